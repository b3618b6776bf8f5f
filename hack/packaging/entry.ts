import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** One file of a package. */
export interface Entry {
  /** Relative to the root directory of the host. */
  readonly path: string;
  readonly mode: number;
  readonly source: EntrySource;
}

export type EntrySource =
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "text"; readonly text: string }
  /** Compressed in the package, as Debian's policy requires of manual pages and change logs. */
  | { readonly type: "compressed-text"; readonly text: string };

export function fileEntry(path: string, from: string, mode = 0o644): Entry {
  return { path, mode, source: { type: "file", path: from } };
}

export function textEntry(path: string, text: string, mode = 0o644): Entry {
  return { path, mode, source: { type: "text", text } };
}

export function compressedEntry(path: string, text: string): Entry {
  return { path: `${path}.gz`, mode: 0o644, source: { type: "compressed-text", text } };
}

/** Returns all files below `from` for which `isIncluded` returns true, sorted by name. */
export function directoryEntries(
  path: string,
  from: string,
  isIncluded: (path: string) => boolean = () => true,
): Entry[] {
  if (!existsSync(from)) return [];
  return readdirSync(from, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((child) => {
      const source = join(from, child.name);
      if (!isIncluded(source)) return [];
      if (child.isDirectory()) return directoryEntries(`${path}/${child.name}`, source, isIncluded);
      return child.isFile() ? [fileEntry(`${path}/${child.name}`, source)] : [];
    });
}
