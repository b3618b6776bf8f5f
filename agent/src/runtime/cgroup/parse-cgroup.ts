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

/** Reads files of `KEY NUMBER` lines, such as memory.stat, memory.events, cpu.stat. */
export function parseKeyed(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [key, value] = line.split(" ");
    if (key && value) values.set(key, Number(value));
  }
  return values;
}

/** Working set: what can't be had back without swapping, as Kubernetes counts it. */
export function workingSet(memoryBytes: number, inactiveFileBytes: number | undefined): number {
  return Math.max(0, memoryBytes - (inactiveFileBytes ?? 0));
}
