/** The paths of a process's accounting, relative to each hierarchy's mount point. */
export interface CgroupPlaces {
  /** v1: controller → path. Empty on a host with only v2. */
  readonly v1: ReadonlyMap<string, string>;
  /** v2's path, if that hierarchy is there at all. */
  readonly v2: string | undefined;
}

/** Reads `/proc/PID/cgroup`, see cgroups(7): `HIERARCHY:CONTROLLERS:PATH` a line, `0::PATH` for v2. */
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
 * Returns one value of a file of `KEY NUMBER` lines, such as memory.stat, memory.events, cpu.stat. It searches instead of parsing
 * all: a sample of statistics needs a few of 60 lines, and many tasks are sampled each second.
 */
export function keyedValue(text: string, key: string): number | undefined {
  const wanted = `${key} `;
  const start = text.startsWith(wanted) ? 0 : text.indexOf(`\n${wanted}`) + 1;
  if (start === 0 && !text.startsWith(wanted)) return undefined;
  const from = start + wanted.length;
  const end = text.indexOf("\n", from);
  return Number(text.slice(from, end < 0 ? undefined : end));
}

/** Working set: what can't be had back without swapping, as Kubernetes counts it. */
export function workingSet(memoryBytes: number, inactiveFileBytes: number | undefined): number {
  return Math.max(0, memoryBytes - (inactiveFileBytes ?? 0));
}
