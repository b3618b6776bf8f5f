/** The cgroup paths of a process, relative to the mount point of each hierarchy. */
export interface CgroupPlaces {
  /** Paths of v1 by controller. Empty on a host with v2 only. */
  readonly v1: ReadonlyMap<string, string>;
  /** The path of v2; undefined if that hierarchy is not mounted. */
  readonly v2: string | undefined;
}

/** Parses `/proc/PID/cgroup` (cgroups(7)). Each line is `HIERARCHY:CONTROLLERS:PATH`, for v2 `0::PATH`. */
export function parsePlaces(text: string): CgroupPlaces {
  const v1 = new Map<string, string>();
  let v2: string | undefined;
  for (const line of text.split("\n")) {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    const [, hierarchy, controllers = "", path] = match ?? [];
    if (path === undefined) continue;
    if (hierarchy === "0" && controllers === "") v2 = path;
    else for (const controller of controllers.split(",")) v1.set(controller, path);
  }
  return { v1, v2 };
}

/**
 * Returns one value of a file of `KEY NUMBER` lines, such as memory.stat, memory.events or cpu.stat. It searches for
 * the key instead of parsing the file: a sample needs a few of 60 lines, and many tasks are sampled each second.
 */
export function keyedValue(text: string, key: string): number | undefined {
  const desired = `${key} `;
  const start = text.startsWith(desired) ? 0 : text.indexOf(`\n${desired}`) + 1;
  if (start === 0 && !text.startsWith(desired)) return undefined;
  const from = start + desired.length;
  const end = text.indexOf("\n", from);
  return Number(text.slice(from, end < 0 ? undefined : end));
}

/** Returns the working set as Kubernetes defines it: memory that can't be reclaimed without swapping. */
export function workingSet(memoryBytes: number, inactiveFileBytes: number | undefined): number {
  return Math.max(0, memoryBytes - (inactiveFileBytes ?? 0));
}
