/** The CPU time of a pod's running containers at one moment, by runtime id. */
export interface CpuReading {
  /** The time of the reading, by the monotonic clock. */
  readonly atMs: number;
  readonly nanos: ReadonlyMap<string, number>;
}

export interface CpuRate {
  /** The rate in billionths of a core. */
  readonly nanoCores: number;
  readonly windowMs: number;
}

/**
 * Returns the mean rate between two samples. A container that started after the first sample counts from its start. The
 * usage of a container that has ended is lost. Undefined if the rate is unknown. Pure.
 */
export function cpuRate(
  before: CpuReading | undefined,
  now: CpuReading,
  ageMsOf: (containerId: string) => number,
): CpuRate | undefined {
  if (before === undefined) return undefined;
  const windowMs = now.atMs - before.atMs;
  if (windowMs <= 0) return undefined;
  let used = 0;
  for (const [id, nanos] of now.nanos) {
    const base = before.nanos.get(id) ?? (ageMsOf(id) <= windowMs ? 0 : undefined);
    if (base === undefined || nanos < base) return undefined;
    used += nanos - base;
  }
  return { nanoCores: Math.round((used / windowMs) * 1000), windowMs };
}
