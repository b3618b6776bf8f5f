import { type ContainerTuning, RuntimeError } from "../runtime.ts";
import { checkPath } from "./check-path.ts";

// The names that nerdctl and runc support; see getrlimit(2).
const ULIMITS = new Set(
  "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack".split(
    " ",
  ),
);

/**
 * Returns nerdctl's options for settings that pods do not have. Throws START_FAILED for values that nerdctl would
 * misread.
 */
export function tuningOptions(tuning: ContainerTuning = {}): readonly string[] {
  const { memorySoftLimitBytes, cpuset, cpuPeriodMicros, cpuQuotaMicros, pidsLimit } = tuning;
  const { shmBytes, oomScoreAdjustment, initProgram, memorySwappiness } = tuning;
  return [
    ...option("memory-reservation", memorySoftLimitBytes),
    ...option("memory-swappiness", memorySwappiness),
    ...option("cpuset-cpus", cpuset === undefined ? undefined : checkCpuset(cpuset)),
    ...option("cpu-period", cpuPeriodMicros),
    ...option("cpu-quota", cpuQuotaMicros),
    ...option("pids-limit", pidsLimit),
    ...option("shm-size", shmBytes),
    ...option("oom-score-adj", oomScoreAdjustment),
    ...(initProgram === undefined ? [] : ["--init", `--init-binary=${checkPath("init", initProgram)}`]),
    ...(tuning.hostNamespaces ?? []).map((kind) => `--${kind}=host`),
    ...option("cgroupns", tuning.cgroupNamespace),
    ...(tuning.ulimits ?? []).map(ulimitOption),
    ...Object.entries(tuning.sysctls ?? {}).map(sysctlOption),
    ...(tuning.tmpfs ?? []).map(tmpfsOption),
  ];
}

const UNLIMITED = -1;

/**
 * Returns the limit of memory plus swap. Equal limits disable swap; without the option nerdctl would allow as much swap
 * as memory.
 */
export function memorySwapOf(tuning: ContainerTuning | undefined, memoryLimitBytes: number): number {
  const swap = tuning?.memorySwapLimitBytes ?? memoryLimitBytes;
  if (swap !== UNLIMITED && swap < memoryLimitBytes)
    throw refusal(`memory and swap together (${swap} bytes) are less than the memory (${memoryLimitBytes})`);
  return whole("memory and swap", swap);
}

function option(name: string, value: number | string | undefined): readonly string[] {
  if (value === undefined) return [];
  return [`--${name}=${typeof value === "number" ? whole(name, value) : value}`];
}

function ulimitOption({ name, soft, hard }: NonNullable<ContainerTuning["ulimits"]>[number]): string {
  if (!ULIMITS.has(name))
    throw refusal(`${JSON.stringify(name)} is not a resource limit: use one of ${[...ULIMITS].join(", ")}`);
  return `--ulimit=${name}=${whole("ulimit", soft)}:${whole("ulimit", hard)}`;
}

function tmpfsOption({ target, sizeBytes }: NonNullable<ContainerTuning["tmpfs"]>[number]): string {
  const size = sizeBytes === undefined ? "" : `:size=${whole("tmpfs size", sizeBytes)}`;
  return `--tmpfs=${checkPath("tmpfs", target)}${size}`;
}

function sysctlOption([name, value]: readonly [string, string]): string {
  if (!/^[A-Za-z0-9_./-]{1,200}$/.test(name) || !/^[^\n\0]{0,1000}$/.test(value))
    throw refusal(
      `sysctl ${JSON.stringify(name)}: the name or the value has characters that are not allowed`,
    );
  return `--sysctl=${name}=${value}`;
}

function checkCpuset(cpuset: string): string {
  if (/^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$/.test(cpuset)) return cpuset;
  throw refusal(`cpuset ${JSON.stringify(cpuset)}: must be a list of CPUs such as 0-2,4`);
}

function whole(what: string, value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw refusal(`${what} ${value}: must be a whole number`);
}

function refusal(message: string): RuntimeError {
  return new RuntimeError("START_FAILED", message, { retryable: false });
}
