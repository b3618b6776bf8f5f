import type { ContainerUsage, DetailedUsage } from "../runtime.ts";
import { type ContainerCgroup, readOomKills, readProcesses } from "./container-cgroup.ts";
import { keyedValue, workingSet } from "./parse-cgroup.ts";
import { readProcessUsage } from "./process-usage.ts";
import { readKernelFile } from "./read-kernel-file.ts";

/**
 * Returns CPU and memory usage, or undefined if no process runs in the cgroup. containerd keeps the cgroup of a
 * container that has ended until its removal.
 */
export function readUsage(cgroup: ContainerCgroup): ContainerUsage | undefined {
  if (readProcesses(cgroup).length === 0) return undefined;
  const counters = readCounters(cgroup);
  return counters && { ...usageOf(counters), oomKills: readOomKills(cgroup) };
}

/**
 * Returns all statistics that the kernel has for a container, or undefined if no process runs in the cgroup. Reads each
 * file once.
 */
export function readDetailedUsage(cgroup: ContainerCgroup, procDir = "/proc"): DetailedUsage | undefined {
  const pids = readProcesses(cgroup);
  if (pids.length === 0) return undefined;
  const counters = readCounters(cgroup);
  if (counters === undefined) return undefined;
  const details = cgroup.version === 1 ? readV1Details(cgroup, counters) : readV2Details(cgroup, counters);
  if (details === undefined) return undefined;
  const processes = readProcessUsage(pids, procDir);
  return { ...usageOf(counters), ...details, processes };
}

/** The counters that both kinds of usage need. */
interface Counters {
  readonly cpuNanos: number;
  /** The text of v2's cpu.stat, or a single number with v1. */
  readonly cpu: string;
  readonly memoryBytes: number;
  /** The text of memory.stat. */
  readonly memory: string;
  readonly inactiveFileBytes: number | undefined;
}

function readCounters({ version, memoryDir, cpuDir }: ContainerCgroup): Counters | undefined {
  const isV1 = version === 1;
  const cpu = readKernelFile(`${cpuDir}/${isV1 ? "cpuacct.usage" : "cpu.stat"}`);
  const memoryBytes = readKernelFile(`${memoryDir}/${isV1 ? "memory.usage_in_bytes" : "memory.current"}`);
  const memory = readKernelFile(`${memoryDir}/memory.stat`);
  if (cpu === undefined || memoryBytes === undefined || memory === undefined) return undefined;
  return {
    cpuNanos: isV1 ? Number(cpu) : (keyedValue(cpu, "usage_usec") ?? 0) * 1_000,
    cpu,
    memoryBytes: Number(memoryBytes),
    memory,
    inactiveFileBytes: keyedValue(memory, isV1 ? "total_inactive_file" : "inactive_file"),
  };
}

function usageOf({ cpuNanos, memoryBytes, inactiveFileBytes }: Counters): Omit<ContainerUsage, "oomKills"> {
  return { cpuNanos, memoryBytes, workingSetBytes: workingSet(memoryBytes, inactiveFileBytes) };
}

type Details = Omit<DetailedUsage, keyof ContainerUsage | "processes">;

function readV1Details({ memoryDir, cpuDir }: ContainerCgroup, { memory }: Counters): Details | undefined {
  const user = readKernelFile(`${cpuDir}/cpuacct.usage_user`);
  const system = readKernelFile(`${cpuDir}/cpuacct.usage_sys`);
  if (user === undefined || system === undefined) return undefined;
  const cpu = readKernelFile(`${cpuControllerDir(cpuDir)}/cpu.stat`) ?? "";
  return {
    userNanos: Number(user),
    systemNanos: Number(system),
    ...measured("throttledPeriods", keyedValue(cpu, "nr_throttled")),
    ...measured("throttledNanos", keyedValue(cpu, "throttled_time")),
    rssBytes: keyedValue(memory, "total_rss") ?? 0,
    cacheBytes: keyedValue(memory, "total_cache") ?? 0,
    ...measured("swapBytes", keyedValue(memory, "total_swap")),
    ...measured("maxMemoryBytes", readNumber(`${memoryDir}/memory.max_usage_in_bytes`)),
    ...measured("kernelBytes", readNumber(`${memoryDir}/memory.kmem.usage_in_bytes`)),
    ...measured("maxKernelBytes", readNumber(`${memoryDir}/memory.kmem.max_usage_in_bytes`)),
  };
}

function readV2Details({ memoryDir }: ContainerCgroup, { cpu, memory }: Counters): Details {
  const throttledMicros = keyedValue(cpu, "throttled_usec");
  return {
    userNanos: (keyedValue(cpu, "user_usec") ?? 0) * 1_000,
    systemNanos: (keyedValue(cpu, "system_usec") ?? 0) * 1_000,
    ...measured("throttledPeriods", keyedValue(cpu, "nr_throttled")),
    ...measured("throttledNanos", throttledMicros === undefined ? undefined : throttledMicros * 1_000),
    rssBytes: keyedValue(memory, "anon") ?? 0,
    cacheBytes: keyedValue(memory, "file") ?? 0,
    ...measured("swapBytes", readNumber(`${memoryDir}/memory.swap.current`)),
    ...measured("maxMemoryBytes", readNumber(`${memoryDir}/memory.peak`)),
    ...measured("kernelBytes", keyedValue(memory, "kernel")),
  };
}

// On v1 hosts, cpuacct may be mounted separately from cpu. A container has the same path in both.
function cpuControllerDir(cpuacctDir: string): string {
  return cpuacctDir.replace("/cpuacct/", "/cpu/");
}

function readNumber(path: string): number | undefined {
  const text = readKernelFile(path);
  return text === undefined || text.trim() === "" ? undefined : Number(text);
}

function measured<K extends string>(key: K, value: number | undefined): { [name in K]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { [name in K]?: number });
}
