import { join } from "node:path";
import { type CgroupPlaces, keyedValue, parsePlaces } from "./parse-cgroup.ts";
import { readKernelFile } from "./read-kernel-file.ts";

/** The directories of the cgroup of one container. */
export interface ContainerCgroup {
  readonly version: 1 | 2;
  readonly memoryDir: string;
  readonly cpuDir: string;
}

/** The mount point of the hierarchies. Each v1 controller has a directory of its name. */
export const CGROUP_ROOT = "/sys/fs/cgroup";

/**
 * Returns the cgroup at nerdctl's default path, for cgroupfs or systemd. Returns undefined if it exists at neither
 * path; `findCgroup` then finds it from one of its processes. Querying nerdctl for a process costs 40 ms of CPU for
 * each container.
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

/**
 * Returns the cgroup of a container from the pid of any of its processes. Returns undefined if the process has ended.
 */
export function findCgroup(pid: number, root = CGROUP_ROOT): ContainerCgroup | undefined {
  const text = readKernelFile(`/proc/${pid}/cgroup`);
  return text === undefined ? undefined : locate(parsePlaces(text), root);
}

/** Returns the cgroup's directories. A host with the v1 memory controller, also in the hybrid layout, is read as v1. */
export function locate({ v1, v2 }: CgroupPlaces, root: string): ContainerCgroup | undefined {
  const memory = v1.get("memory");
  const cpu = v1.get("cpuacct");
  if (memory !== undefined && cpu !== undefined) {
    return { version: 1, memoryDir: join(root, "memory", memory), cpuDir: join(root, "cpuacct", cpu) };
  }
  return v2 === undefined ? undefined : { version: 2, memoryDir: join(root, v2), cpuDir: join(root, v2) };
}

/**
 * Returns how many processes of the cgroup the kernel has killed for lack of memory, also after the container's end.
 */
export function readOomKills({ version, memoryDir }: ContainerCgroup): number {
  const file = version === 1 ? "memory.oom_control" : "memory.events";
  return keyedValue(readKernelFile(`${memoryDir}/${file}`) ?? "", "oom_kill") ?? 0;
}

/** Returns the ids of all processes in the cgroup, in the host's pid namespace. */
export function readProcesses(cgroup: ContainerCgroup): readonly number[] {
  const text = readKernelFile(`${cgroup.memoryDir}/cgroup.procs`);
  return (text ?? "").split("\n").filter(Boolean).map(Number);
}
