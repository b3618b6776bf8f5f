import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import type { ContainerSpec, ContainerTuning } from "../../runtime/runtime.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";

export interface TaskLimits {
  readonly limits: Pick<ContainerSpec, "memoryLimitBytes" | "cpuShares">;
  readonly tuning: Pick<
    ContainerTuning,
    | "memorySoftLimitBytes"
    | "memorySwapLimitBytes"
    | "memorySwappiness"
    | "cpuset"
    | "cpuPeriodMicros"
    | "cpuQuotaMicros"
  >;
}

const MIB = 1024 * 1024;
/** The `memory_max` of a task that may use all memory of the host. */
const MEMORY_UNLIMITED = -1n;
// The kernel's default.
const CPU_PERIOD_MICROS = 100_000;
// The smallest quota that the kernel accepts.
const CPU_QUOTA_MIN_MICROS = 1_000;

type LimitOptions = Pick<
  TaskOptions,
  "cpuHardLimit" | "cpuPeriodMicros" | "memoryReservationBytes" | "memorySwapBytes" | "memorySwappiness"
>;

/**
 * Returns the limits from Nomad's resources and the job's own settings. `memory_max`, if set, is the limit, and memory
 * above `memory` is then reclaimed first. Throws INVALID for contradicting limits. Pure.
 */
export function limitsOf({ resources }: TaskConfig, options: LimitOptions, cores: number): TaskLimits {
  const { cpuHardLimit, cpuPeriodMicros } = options;
  const linux = resources?.linuxResources;
  const { memoryMb = 0n, memoryMaxMb = 0n } = resources?.allocatedResources?.memory ?? {};
  const limit = memoryMaxMb === MEMORY_UNLIMITED ? 0 : Number(linux?.memoryLimitBytes ?? 0n);
  const soft = memoryMaxMb > memoryMb || memoryMaxMb === MEMORY_UNLIMITED ? Number(memoryMb) * MIB : 0;
  const shares = Number(linux?.cpuShares ?? 0n);
  const period = cpuPeriodMicros ?? (Number(linux?.cpuPeriod ?? 0n) || CPU_PERIOD_MICROS);
  const share = cpuHardLimit ? Math.floor((linux?.PercentTicks ?? 0) * period * cores) : 0;
  const quota = Number(linux?.cpuQuota ?? 0n) || share;
  return {
    limits: { ...positive("memoryLimitBytes", limit), ...positive("cpuShares", shares) },
    tuning: {
      ...positive("memorySoftLimitBytes", soft),
      ...memoryTuning(options, limit),
      ...(linux?.cpusetCpus ? { cpuset: linux.cpusetCpus } : {}),
      ...(quota > 0 && { cpuPeriodMicros: period, cpuQuotaMicros: Math.max(CPU_QUOTA_MIN_MICROS, quota) }),
    },
  };
}

type MemoryTuning = Pick<
  ContainerTuning,
  "memorySoftLimitBytes" | "memorySwapLimitBytes" | "memorySwappiness"
>;

/** Returns the memory settings. Those of the task's `config` override Nomad's. */
function memoryTuning(options: LimitOptions, limitBytes: number): MemoryTuning {
  const { memoryReservationBytes, memorySwapBytes, memorySwappiness } = options;
  if (memorySwapBytes !== undefined && limitBytes === 0)
    throw new DriverError("INVALID", "config.memory_swap: the task has no memory limit");
  if (memorySwapBytes !== undefined && memorySwapBytes >= 0 && memorySwapBytes < limitBytes)
    throw new DriverError(
      "INVALID",
      `config.memory_swap: memory and swap together must be at least the memory limit of ${limitBytes} bytes`,
    );
  if (memoryReservationBytes !== undefined && limitBytes > 0 && memoryReservationBytes > limitBytes)
    throw new DriverError(
      "INVALID",
      `config.memory_reservation: must be at most the memory limit of ${limitBytes} bytes`,
    );
  return {
    ...(memoryReservationBytes !== undefined && { memorySoftLimitBytes: memoryReservationBytes }),
    ...(memorySwapBytes !== undefined && { memorySwapLimitBytes: memorySwapBytes }),
    ...(memorySwappiness !== undefined && { memorySwappiness }),
  };
}

/**
 * Returns the MHz of one core, derived from the task's share of the node's compute. Undefined if Nomad does not pass
 * the share.
 */
export function coreMhzOf({ resources }: TaskConfig, cores: number): number | undefined {
  const { cpuShares = 0n, PercentTicks = 0 } = resources?.linuxResources ?? {};
  if (cpuShares <= 0n || PercentTicks <= 0 || cores <= 0) return undefined;
  return Number(cpuShares) / PercentTicks / cores;
}

function positive<K extends string>(key: K, value: number): { [name in K]?: number } {
  return value > 0 ? ({ [key]: value } as { [name in K]?: number }) : {};
}
