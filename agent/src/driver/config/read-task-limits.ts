import type { TaskPolicy } from "./driver-options.ts";
import { parseSize, parseUlimit } from "./parse-values.ts";
import type { Section } from "./section.ts";

/** Linux's largest process ID. */
const PIDS_MAX = 4_194_304;
const OOM_SCORE_MAX = 1_000;
// The kernel's bounds.
const CPU_PERIOD_MIN_MICROS = 1_000;
const CPU_PERIOD_MAX_MICROS = 1_000_000;
const SWAPPINESS_MAX = 100;
const UNLIMITED = -1;
/** Kernel parameters that belong to a namespace of the task instead of the whole host. */
const NAMESPACED_SYSCTL =
  /^(net\.[a-z0-9_./-]+|fs\.mqueue\.[a-z_]+|kernel\.(msg[a-z_]*|sem|shm[a-z_]*|domainname))$/i;

/** Reads the limits of a task that Nomad's `resources` block does not have. */
export function readLimits(section: Section, { allowPrivileged }: TaskPolicy) {
  const shmSizeBytes = section.parsed("shm_size", parseSize);
  const pidsLimit = section.wholeNumber("pids_limit", 1, PIDS_MAX);
  const oomScoreAdj = section.wholeNumber("oom_score_adj", -OOM_SCORE_MAX, OOM_SCORE_MAX);
  if (oomScoreAdj !== undefined && oomScoreAdj < 0 && !allowPrivileged)
    section.problem("oom_score_adj", "a value below 0 needs the plugin's allow_privileged");
  const sysctls = section.parsedMap("sysctl", (name, text) => {
    if (!NAMESPACED_SYSCTL.test(name))
      throw new Error("the parameter belongs to the whole host, not to the task");
    if (!/^[\x20-\x7e]{1,256}$/.test(text)) throw new Error("must be one line of text");
    return [name, text] as const;
  });
  return {
    sysctl: Object.fromEntries(sysctls),
    ulimits: section.parsedMap("ulimit", parseUlimit),
    ...(shmSizeBytes !== undefined && { shmSizeBytes }),
    ...(pidsLimit !== undefined && { pidsLimit }),
    ...readCpu(section),
    ...readMemory(section),
    ...(oomScoreAdj !== undefined && { oomScoreAdj }),
  };
}

function readCpu(section: Section) {
  const cpuPeriodMicros = section.wholeNumber("cpu_cfs_period", CPU_PERIOD_MIN_MICROS, CPU_PERIOD_MAX_MICROS);
  const cpuHardLimit = section.flag("cpu_hard_limit", false);
  if (cpuPeriodMicros !== undefined && !cpuHardLimit)
    section.problem("cpu_cfs_period", "has no meaning without cpu_hard_limit");
  return { cpuHardLimit, ...(cpuPeriodMicros !== undefined && { cpuPeriodMicros }) };
}

function readMemory(section: Section) {
  const memoryReservationBytes = section.parsed("memory_reservation", parseSize);
  const memorySwapBytes = section.parsed("memory_swap", (text) =>
    text === "-1" ? UNLIMITED : parseSize(text),
  );
  const memorySwappiness = section.wholeNumber("memory_swappiness", 0, SWAPPINESS_MAX);
  return {
    ...(memoryReservationBytes !== undefined && { memoryReservationBytes }),
    ...(memorySwapBytes !== undefined && { memorySwapBytes }),
    ...(memorySwappiness !== undefined && { memorySwappiness }),
  };
}
