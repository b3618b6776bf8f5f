import { readFile } from "node:fs/promises";

/** One line of /proc/self/mountinfo. */
export interface MountEntry {
  /** `major:minor` of the file system. */
  readonly device: string;
  /**
   * The directory or file of that file system that is visible at `mountPoint`. Ends in `//deleted` if it was removed.
   */
  readonly root: string;
  readonly mountPoint: string;
  readonly type: string;
  readonly source: string;
}

/** A part of a file system that is visible at some path. */
export interface Subtree {
  readonly device: string;
  readonly root: string;
}

/** Returns the mounts of this process's mount namespace, in mount order. Reading them never waits for a file system. */
export async function readMountTable(): Promise<readonly MountEntry[]> {
  return parseMountTable(await readFile("/proc/self/mountinfo", "utf8"));
}

export function parseMountTable(text: string): readonly MountEntry[] {
  return text.split("\n").flatMap((line) => {
    const fields = line.split(" ");
    const dash = fields.indexOf("-", 6);
    const [device, root, mountPoint] = [fields[2], fields[3], fields[4]];
    if (dash < 0 || device === undefined || root === undefined || mountPoint === undefined) return [];
    const [type = "", source = ""] = fields.slice(dash + 1).map(decodeField);
    return [{ device, root: decodeField(root), mountPoint: decodeField(mountPoint), type, source }];
  });
}

/** Returns the mount at exactly this path. The last mount covers earlier ones. */
export function mountAt(table: readonly MountEntry[], path: string): MountEntry | undefined {
  return table.findLast((it) => it.mountPoint === path);
}

/** Returns all mounts at or below the path, the newest first: the order in which to unmount them. */
export function mountsBelow(table: readonly MountEntry[], path: string): readonly MountEntry[] {
  return table.filter((it) => isWithin(it.mountPoint, path)).reverse();
}

/**
 * Returns the parts of file systems that are reachable through a path without following links: its own place, and the
 * mounts below it. The path must be canonical.
 */
export function visibleFrom(table: readonly MountEntry[], path: string): readonly Subtree[] {
  const covering = table.filter((it) => isWithin(path, it.mountPoint));
  const longest = Math.max(...covering.map((it) => it.mountPoint.length));
  const home = covering.findLast((it) => it.mountPoint.length === longest);
  const below = mountsBelow(table, path).filter((it) => it.mountPoint !== path);
  if (home === undefined) return below;
  const rest = path.slice(home.mountPoint === "/" ? 0 : home.mountPoint.length);
  return [{ device: home.device, root: join(home.root, rest) }, ...below];
}

/** Reports whether all files of `inner` are also files of `outer`. */
export function isPartOf(inner: Subtree, outer: Subtree): boolean {
  return (
    inner.device === outer.device && isWithin(inner.root, outer.root) && !inner.root.endsWith("//deleted")
  );
}

function isWithin(path: string, directory: string): boolean {
  return directory === "/" || path === directory || path.startsWith(`${directory}/`);
}

function join(root: string, rest: string): string {
  const joined = `${root === "/" ? "" : root}${rest === "/" ? "" : rest}`;
  return joined === "" ? "/" : joined;
}

/** Decodes a field, in which space, tab, line break and backslash are octal escapes. */
function decodeField(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
