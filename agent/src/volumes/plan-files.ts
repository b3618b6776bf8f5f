import { type FilesSource, VolumeError } from "./volumes.ts";

export interface PlannedFile {
  /** A relative path, whose first part never begins with `..`. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
}

const DEFAULT_MODE = 0o644;

/**
 * Returns the files for a secret or config map. Pure. @returns undefined if the object does not exist and is optional.
 * @throws VolumeError SOURCE_MISSING, INVALID.
 */
export function planFiles(source: FilesSource): readonly PlannedFile[] | undefined {
  const { contents, items, optional, title } = source;
  const defaultMode = source.defaultMode || DEFAULT_MODE;
  if (contents === undefined) {
    if (optional) return undefined;
    throw new VolumeError("SOURCE_MISSING", `${title} doesn't exist`);
  }
  if (items.length === 0) {
    return [...contents].map(([path, content]) => ({ path, content, mode: defaultMode }));
  }
  const files: PlannedFile[] = [];
  for (const { key, path, mode } of items) {
    const content = contents.get(key);
    if (content !== undefined) files.push({ path: normal(path), content, mode: mode || defaultMode });
    else if (!optional) throw new VolumeError("SOURCE_MISSING", `${title} has no key ${JSON.stringify(key)}`);
  }
  checkDistinct(files, title);
  return files;
}

function normal(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/");
}

/** Rejects plans that name a file twice or need a directory in the place of a file. */
function checkDistinct(files: readonly PlannedFile[], title: string): void {
  const paths = new Set<string>();
  for (const { path } of files) {
    if (path === "" || paths.has(path)) throw conflict(title, path);
    paths.add(path);
  }
  for (const path of paths) {
    for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
      if (paths.has(path.slice(0, slash))) throw conflict(title, path.slice(0, slash));
    }
  }
}

function conflict(title: string, path: string): VolumeError {
  return new VolumeError("INVALID", `${title}: two items have the path ${JSON.stringify(path)}`);
}
