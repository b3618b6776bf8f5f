import {
  CPUUsage_Fields,
  MemoryUsage_Fields,
  type TaskResourceUsage,
  type TaskStats,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { DetailedUsage, ProcessUsage } from "../../runtime/runtime.ts";
import { toTimestamp } from "./timestamp.ts";

/** The usage of a task at one moment of the monotonic clock. */
export interface UsageReading {
  readonly atMs: number;
  readonly usage: Pick<DetailedUsage, "cpuNanos" | "userNanos" | "systemNanos" | "processes">;
}

/** The reading at a task's start, with no usage. */
export function emptyReading(atMs: number): UsageReading {
  return { atMs, usage: { cpuNanos: 0, userNanos: 0, systemNanos: 0, processes: [] } };
}

export interface StatsInput {
  readonly id: string;
  readonly nowMs: number;
  readonly before: UsageReading;
  readonly reading: { readonly atMs: number; readonly usage: DetailedUsage };
  /** MHz of one core. */
  readonly coreMhz: number;
}

/** Returns a sample in Nomad's form. Percentages are of one core; a tick is one MHz of CPU time per second. Pure. */
export function taskStats({ id, nowMs, before, reading, coreMhz }: StatsInput): TaskStats {
  const { usage, atMs } = reading;
  const windowNanos = Math.max(1, (atMs - before.atMs) * 1e6);
  const percentOf = (now: number, then: number): number => (Math.max(0, now - then) / windowNanos) * 100;
  const percent = percentOf(usage.cpuNanos, before.usage.cpuNanos);
  const cpu = {
    userMode: percentOf(usage.userNanos, before.usage.userNanos),
    systemMode: percentOf(usage.systemNanos, before.usage.systemNanos),
    totalTicks: (percent / 100) * coreMhz,
    percent,
  };
  return {
    id,
    timestamp: toTimestamp(nowMs),
    aggResourceUsage: { cpu: cpuUsage(cpu, usage), memory: memoryUsage(usage) },
    resourceUsageByPid: Object.fromEntries(
      usage.processes.map((process) => {
        const earlier = before.usage.processes.find(
          ({ pid, startTicks }) => pid === process.pid && startTicks === process.startTicks,
        );
        return [process.pid, processUsage(process, earlier, percentOf, coreMhz)];
      }),
    ),
  };
}

/** A process that is missing in the earlier reading started after it. */
function processUsage(
  { userNanos, systemNanos, rssBytes, swapBytes }: ProcessUsage,
  earlier: ProcessUsage | undefined,
  percentOf: (now: number, then: number) => number,
  coreMhz: number,
): TaskResourceUsage {
  const userMode = percentOf(userNanos, earlier?.userNanos ?? 0);
  const systemMode = percentOf(systemNanos, earlier?.systemNanos ?? 0);
  const percent = userMode + systemMode;
  const { SYSTEM_MODE, USER_MODE, TOTAL_TICKS, PERCENT } = CPUUsage_Fields;
  const { RSS, SWAP } = MemoryUsage_Fields;
  return {
    cpu: {
      ...{ userMode, systemMode, percent, totalTicks: (percent / 100) * coreMhz },
      ...{ throttledPeriods: 0n, throttledTime: 0n },
      measuredFields: [SYSTEM_MODE, USER_MODE, TOTAL_TICKS, PERCENT],
    },
    memory: {
      ...{ rss: counter(rssBytes), swap: counter(swapBytes), cache: 0n, usage: 0n },
      ...{ maxUsage: 0n, kernelUsage: 0n, kernelMaxUsage: 0n },
      measuredFields: [RSS, SWAP],
    },
  };
}

interface CpuRates {
  readonly userMode: number;
  readonly systemMode: number;
  readonly totalTicks: number;
  readonly percent: number;
}

function cpuUsage(
  rates: CpuRates,
  { throttledPeriods, throttledNanos }: DetailedUsage,
): TaskResourceUsage["cpu"] {
  const { SYSTEM_MODE, USER_MODE, TOTAL_TICKS, PERCENT, THROTTLED_PERIODS, THROTTLED_TIME } = CPUUsage_Fields;
  return {
    ...rates,
    throttledPeriods: counter(throttledPeriods),
    throttledTime: counter(throttledNanos),
    measuredFields: [
      ...[SYSTEM_MODE, USER_MODE, TOTAL_TICKS, PERCENT],
      ...(throttledPeriods === undefined ? [] : [THROTTLED_PERIODS]),
      ...(throttledNanos === undefined ? [] : [THROTTLED_TIME]),
    ],
  };
}

function memoryUsage(usage: DetailedUsage): TaskResourceUsage["memory"] {
  const { RSS, CACHE, USAGE, SWAP, MAX_USAGE, KERNEL_USAGE, KERNEL_MAX_USAGE } = MemoryUsage_Fields;
  const { swapBytes, maxMemoryBytes, kernelBytes, maxKernelBytes } = usage;
  return {
    rss: counter(usage.rssBytes),
    cache: counter(usage.cacheBytes),
    usage: counter(usage.memoryBytes),
    swap: counter(swapBytes),
    maxUsage: counter(maxMemoryBytes),
    kernelUsage: counter(kernelBytes),
    kernelMaxUsage: counter(maxKernelBytes),
    measuredFields: [
      ...[RSS, CACHE, USAGE],
      ...(swapBytes === undefined ? [] : [SWAP]),
      ...(maxMemoryBytes === undefined ? [] : [MAX_USAGE]),
      ...(kernelBytes === undefined ? [] : [KERNEL_USAGE]),
      ...(maxKernelBytes === undefined ? [] : [KERNEL_MAX_USAGE]),
    ],
  };
}

function counter(value: number | undefined): bigint {
  return BigInt(Math.max(0, Math.round(value ?? 0)));
}
