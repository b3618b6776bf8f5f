import type { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../time/clock.ts";

/** An agent's last sample of one pod. */
export interface PodSample {
  /** The time of its arrival, by the monotonic clock. */
  readonly atMs: number;
  /** Mean over the window; undefined: not known. */
  readonly cpuCores: number | undefined;
  readonly windowMs: number;
  /** Working set; undefined: not known. */
  readonly memoryBytes: number | undefined;
  /** Custom metrics by name. */
  readonly values: ReadonlyMap<string, number>;
  /** The reason for missing values. Empty without a known one. */
  readonly problem: string;
  /** The times for which the pod had run and had been ready; 0: it was not. */
  readonly runningMs: number;
  readonly readyMs: number;
}

export interface PodMetricsOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Samples older than this are no measure of now. */
  readonly lifeMs: number;
}

/** The largest number of requested values. Any more are dropped. */
const MAX_VALUES = 50;
const MAX_PROBLEM_LENGTH = 500;

/** The newest samples of pods by uid. In memory only: what is measured again within seconds needs no disk. */
export class PodMetrics {
  readonly #options: PodMetricsOptions;
  readonly #samples = new Map<string, PodSample>();

  constructor(options: PodMetricsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#samples.size;
  }

  /** The caller knows that the pod is the node's that says so. */
  take(sample: PodMetricsSample): void {
    const { podUid, cpuNanoCores, memoryBytes, windowMs, problem, runningMs, readyMs } = sample;
    const values = Object.entries(sample.values).filter(([, value]) => Number.isFinite(value) && value >= 0);
    this.#samples.set(podUid, {
      atMs: this.#options.clock.monotonicMs(),
      cpuCores: cpuNanoCores === undefined ? undefined : Number(cpuNanoCores) / 1e9,
      windowMs: Number(windowMs),
      memoryBytes: memoryBytes === undefined ? undefined : Number(memoryBytes),
      values: new Map(values.slice(0, MAX_VALUES)),
      problem: problem.slice(0, MAX_PROBLEM_LENGTH),
      runningMs: Number(runningMs),
      readyMs: Number(readyMs),
    });
  }

  /** Undefined: there is none that still counts. */
  get(podUid: string): PodSample | undefined {
    const sample = this.#samples.get(podUid);
    if (sample === undefined) return undefined;
    return sample.atMs + this.#options.lifeMs > this.#options.clock.monotonicMs() ? sample : undefined;
  }

  forget(podUid: string): void {
    this.#samples.delete(podUid);
  }
}
