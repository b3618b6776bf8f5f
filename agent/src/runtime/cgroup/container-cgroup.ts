import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerUsage } from "../runtime.ts";
import { type CgroupPlaces, parseKeyed, parsePlaces, workingSet } from "./parse-cgroup.ts";

/** The directories in which the kernel accounts for one container. */
export interface ContainerCgroup {
  readonly version: 1 | 2;
  readonly memoryDir: string;
  readonly cpuDir: string;
}

/** The mount point of the hierarchies; v1's controllers are each in a directory of their name. */
export const CGROUP_ROOT = "/sys/fs/cgroup";

/**
 * Returns the cgroup at nerdctl's usual place, for cgroupfs or systemd. Undefined if it is in neither place: then one of its
 * processes shows the place. Asking nerdctl for the process takes 40 ms of CPU for each container.
 */
export async function guessCgroup(
  namespace: string,
  id: string,
  root = CGROUP_ROOT,
): Promise<ContainerCgroup | undefined> {
  for (const path of [`/${namespace}/${id}`, `/system.slice/nerdctl-${id}.scope`]) {
    for (const places of [`5:memory,cpuacct:${path}`, `0::${path}`]) {
      const cgroup = locate(parsePlaces(places), root);
      const counter = cgroup?.version === 1 ? "memory.usage_in_bytes" : "memory.current";
      if (cgroup && (await readOrUndefined(join(cgroup.memoryDir, counter))) !== undefined) return cgroup;
    }
  }
  return undefined;
}

/** Returns the cgroup of a container from any process of it; undefined if the process has ended. */
export async function findCgroup(pid: number, root = CGROUP_ROOT): Promise<ContainerCgroup | undefined> {
  const text = await readOrUndefined(`/proc/${pid}/cgroup`);
  return text === undefined ? undefined : locate(parsePlaces(text), root);
}

/** A host that has memory under v1 (also in the hybrid layout) is read as v1. */
export function locate({ v1, v2 }: CgroupPlaces, root: string): ContainerCgroup | undefined {
  const memory = v1.get("memory");
  const cpu = v1.get("cpuacct");
  if (memory !== undefined && cpu !== undefined) {
    return { version: 1, memoryDir: join(root, "memory", memory), cpuDir: join(root, "cpuacct", cpu) };
  }
  return v2 === undefined ? undefined : { version: 2, memoryDir: join(root, v2), cpuDir: join(root, v2) };
}

/** Undefined once nothing runs in it: containerd keeps the cgroup of a container that ended until it is removed. */
export async function readUsage(cgroup: ContainerCgroup): Promise<ContainerUsage | undefined> {
  if ((await readProcesses(cgroup)).length === 0) return undefined;
  return cgroup.version === 1 ? readV1(cgroup) : readV2(cgroup);
}

/** Returns the number of its processes that the kernel killed for lack of memory, also after its end. */
export async function readOomKills({ version, memoryDir }: ContainerCgroup): Promise<number> {
  const file = version === 1 ? "memory.oom_control" : "memory.events";
  return parseKeyed((await readOrUndefined(join(memoryDir, file))) ?? "").get("oom_kill") ?? 0;
}

/** Ids, in the host's view, of all processes in it. */
export async function readProcesses(cgroup: ContainerCgroup): Promise<readonly number[]> {
  const text = await readOrUndefined(join(cgroup.memoryDir, "cgroup.procs"));
  return (text ?? "").split("\n").filter(Boolean).map(Number);
}

async function readV1(cgroup: ContainerCgroup): Promise<ContainerUsage | undefined> {
  const { memoryDir, cpuDir } = cgroup;
  const [cpu, memory, stat] = await Promise.all([
    readOrUndefined(join(cpuDir, "cpuacct.usage")),
    readOrUndefined(join(memoryDir, "memory.usage_in_bytes")),
    readOrUndefined(join(memoryDir, "memory.stat")),
  ]);
  if (cpu === undefined || memory === undefined) return undefined;
  const memoryBytes = Number(memory);
  return {
    cpuNanos: Number(cpu),
    memoryBytes,
    workingSetBytes: workingSet(memoryBytes, parseKeyed(stat ?? "").get("total_inactive_file")),
    oomKills: await readOomKills(cgroup),
  };
}

async function readV2(cgroup: ContainerCgroup): Promise<ContainerUsage | undefined> {
  const { memoryDir, cpuDir } = cgroup;
  const [cpu, memory, stat] = await Promise.all([
    readOrUndefined(join(cpuDir, "cpu.stat")),
    readOrUndefined(join(memoryDir, "memory.current")),
    readOrUndefined(join(memoryDir, "memory.stat")),
  ]);
  if (cpu === undefined || memory === undefined) return undefined;
  const memoryBytes = Number(memory);
  return {
    cpuNanos: (parseKeyed(cpu).get("usage_usec") ?? 0) * 1_000,
    memoryBytes,
    workingSetBytes: workingSet(memoryBytes, parseKeyed(stat ?? "").get("inactive_file")),
    oomKills: await readOomKills(cgroup),
  };
}

/** A cgroup may go at any moment, also between two of its files: ENOENT before, ENODEV while it is removed. */
export async function readOrUndefined(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENODEV", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
