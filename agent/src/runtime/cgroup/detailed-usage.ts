import { join } from "node:path";
import type { DetailedUsage } from "../runtime.ts";
import { type ContainerCgroup, readOrUndefined, readUsage } from "./container-cgroup.ts";
import { parseKeyed } from "./parse-cgroup.ts";

/** Returns all accounting of the kernel for a container; undefined once no process runs in it. */
export async function readDetailedUsage(cgroup: ContainerCgroup): Promise<DetailedUsage | undefined> {
  const [usage, details] = await Promise.all([
    readUsage(cgroup),
    cgroup.version === 1 ? readV1(cgroup) : readV2(cgroup),
  ]);
  return usage && details && { ...usage, ...details };
}

type Details = Omit<DetailedUsage, "cpuNanos" | "memoryBytes" | "workingSetBytes" | "oomKills">;

async function readV1({ memoryDir, cpuDir }: ContainerCgroup): Promise<Details | undefined> {
  const [user, system, throttling, stat, max, kernel, maxKernel] = await Promise.all([
    readOrUndefined(join(cpuDir, "cpuacct.usage_user")),
    readOrUndefined(join(cpuDir, "cpuacct.usage_sys")),
    readOrUndefined(join(cpuControllerDir(cpuDir), "cpu.stat")),
    readOrUndefined(join(memoryDir, "memory.stat")),
    readOrUndefined(join(memoryDir, "memory.max_usage_in_bytes")),
    readOrUndefined(join(memoryDir, "memory.kmem.usage_in_bytes")),
    readOrUndefined(join(memoryDir, "memory.kmem.max_usage_in_bytes")),
  ]);
  if (user === undefined || system === undefined || stat === undefined) return undefined;
  const memory = parseKeyed(stat);
  const cpu = parseKeyed(throttling ?? "");
  return {
    userNanos: Number(user),
    systemNanos: Number(system),
    ...measured("throttledPeriods", cpu.get("nr_throttled")),
    ...measured("throttledNanos", cpu.get("throttled_time")),
    rssBytes: memory.get("total_rss") ?? 0,
    cacheBytes: memory.get("total_cache") ?? 0,
    ...measured("swapBytes", memory.get("total_swap")),
    ...measured("maxMemoryBytes", numberIn(max)),
    ...measured("kernelBytes", numberIn(kernel)),
    ...measured("maxKernelBytes", numberIn(maxKernel)),
  };
}

async function readV2({ memoryDir, cpuDir }: ContainerCgroup): Promise<Details | undefined> {
  const [cpuText, stat, peak, swap] = await Promise.all([
    readOrUndefined(join(cpuDir, "cpu.stat")),
    readOrUndefined(join(memoryDir, "memory.stat")),
    readOrUndefined(join(memoryDir, "memory.peak")),
    readOrUndefined(join(memoryDir, "memory.swap.current")),
  ]);
  if (cpuText === undefined || stat === undefined) return undefined;
  const cpu = parseKeyed(cpuText);
  const memory = parseKeyed(stat);
  const throttledMicros = cpu.get("throttled_usec");
  return {
    userNanos: (cpu.get("user_usec") ?? 0) * 1_000,
    systemNanos: (cpu.get("system_usec") ?? 0) * 1_000,
    ...measured("throttledPeriods", cpu.get("nr_throttled")),
    ...measured("throttledNanos", throttledMicros === undefined ? undefined : throttledMicros * 1_000),
    rssBytes: memory.get("anon") ?? 0,
    cacheBytes: memory.get("file") ?? 0,
    ...measured("swapBytes", numberIn(swap)),
    ...measured("maxMemoryBytes", numberIn(peak)),
    ...measured("kernelBytes", memory.get("kernel")),
  };
}

// On v1 hosts cpuacct may be mounted apart from cpu; containers have the same path in both.
function cpuControllerDir(cpuacctDir: string): string {
  return cpuacctDir.replace("/cpuacct/", "/cpu/");
}

function numberIn(text: string | undefined): number | undefined {
  return text === undefined || text.trim() === "" ? undefined : Number(text);
}

function measured<K extends string>(key: K, value: number | undefined): { [name in K]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { [name in K]?: number });
}
