import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import type { ContainerSpec, ContainerTuning } from "../../runtime/runtime.ts";
import type { TaskOptions } from "../config/task-options.ts";

export interface TaskLimits {
  readonly limits: Pick<ContainerSpec, "memoryLimitBytes" | "cpuShares">;
  readonly tuning: Pick<
    ContainerTuning,
    "memorySoftLimitBytes" | "cpuset" | "cpuPeriodMicros" | "cpuQuotaMicros"
  >;
}

const MIB = 1024 * 1024;
/** `memory_max` of a task that may use all memory of the host. */
const MEMORY_UNLIMITED = -1n;
// The kernel's default.
const CPU_PERIOD_MICROS = 100_000;
// The kernel refuses a smaller quota.
const CPU_QUOTA_MIN_MICROS = 1_000;

/**
 * Returns the limits of Nomad's resources. A task with `memory_max` is limited by that and reclaimed first above `memory`. Pure.
 */
export function limitsOf(
  { resources }: TaskConfig,
  { cpuHardLimit }: Pick<TaskOptions, "cpuHardLimit">,
  cores: number,
): TaskLimits {
  const linux = resources?.linuxResources;
  const { memoryMb = 0n, memoryMaxMb = 0n } = resources?.allocatedResources?.memory ?? {};
  const limit = memoryMaxMb === MEMORY_UNLIMITED ? 0 : Number(linux?.memoryLimitBytes ?? 0n);
  const soft = memoryMaxMb > memoryMb || memoryMaxMb === MEMORY_UNLIMITED ? Number(memoryMb) * MIB : 0;
  const shares = Number(linux?.cpuShares ?? 0n);
  const period = Number(linux?.cpuPeriod ?? 0n) || CPU_PERIOD_MICROS;
  const share = cpuHardLimit ? Math.floor((linux?.PercentTicks ?? 0) * period * cores) : 0;
  const quota = Number(linux?.cpuQuota ?? 0n) || share;
  return {
    limits: { ...positive("memoryLimitBytes", limit), ...positive("cpuShares", shares) },
    tuning: {
      ...positive("memorySoftLimitBytes", soft),
      ...(linux?.cpusetCpus ? { cpuset: linux.cpusetCpus } : {}),
      ...(quota > 0 && { cpuPeriodMicros: period, cpuQuotaMicros: Math.max(CPU_QUOTA_MIN_MICROS, quota) }),
    },
  };
}

/** MHz of one core, from the share of the node's compute that Nomad says the task has; undefined if Nomad does not say. */
export function coreMhzOf({ resources }: TaskConfig, cores: number): number | undefined {
  const { cpuShares = 0n, PercentTicks = 0 } = resources?.linuxResources ?? {};
  if (cpuShares <= 0n || PercentTicks <= 0 || cores <= 0) return undefined;
  return Number(cpuShares) / PercentTicks / cores;
}

function positive<K extends string>(key: K, value: number): { [name in K]?: number } {
  return value > 0 ? ({ [key]: value } as { [name in K]?: number }) : {};
}
