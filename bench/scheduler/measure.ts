import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export interface Timing {
  readonly wallMs: number;
  /** The CPU time of this process. Unlike wall time, it is meaningful on a machine with other work. */
  readonly cpuMs: number;
}

export function time(work: () => void): Timing {
  const cpu = process.cpuUsage();
  const start = performance.now();
  work();
  const wallMs = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs, cpuMs: (user + system) / 1000 };
}

/** Returns the repetition with the least CPU time. */
export function fastest(repetitions: number, prepare: () => () => void): Timing {
  let best: Timing | undefined;
  for (let i = 0; i < repetitions; i++) {
    const timing = time(prepare());
    if (best === undefined || timing.cpuMs < best.cpuMs) best = timing;
  }
  if (best === undefined) throw new Error("nothing was measured");
  return best;
}

/** Returns the bytes in use after a full garbage collection. */
export function bytesInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
