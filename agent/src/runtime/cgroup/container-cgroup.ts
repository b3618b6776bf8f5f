import { join } from "node:path";
import { type CgroupPlaces, keyedValue, parsePlaces } from "./parse-cgroup.ts";
import { readKernelFile } from "./read-kernel-file.ts";

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
export function guessCgroup(namespace: string, id: string, root = CGROUP_ROOT): ContainerCgroup | undefined {
  for (const path of [`/${namespace}/${id}`, `/system.slice/nerdctl-${id}.scope`]) {
    for (const places of [`5:memory,cpuacct:${path}`, `0::${path}`]) {
      const cgroup = locate(parsePlaces(places), root);
      const counter = cgroup?.version === 1 ? "memory.usage_in_bytes" : "memory.current";
      if (cgroup && readKernelFile(join(cgroup.memoryDir, counter)) !== undefined) return cgroup;
    }
  }
  return undefined;
}

/** Returns the cgroup of a container from any process of it; undefined if the process has ended. */
export function findCgroup(pid: number, root = CGROUP_ROOT): ContainerCgroup | undefined {
  const text = readKernelFile(`/proc/${pid}/cgroup`);
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

/** Returns the number of its processes that the kernel killed for lack of memory, also after its end. */
export function readOomKills({ version, memoryDir }: ContainerCgroup): number {
  const file = version === 1 ? "memory.oom_control" : "memory.events";
  return keyedValue(readKernelFile(`${memoryDir}/${file}`) ?? "", "oom_kill") ?? 0;
}

/** Ids, in the host's view, of all processes in it. */
export function readProcesses(cgroup: ContainerCgroup): readonly number[] {
  const text = readKernelFile(`${cgroup.memoryDir}/cgroup.procs`);
  return (text ?? "").split("\n").filter(Boolean).map(Number);
}
