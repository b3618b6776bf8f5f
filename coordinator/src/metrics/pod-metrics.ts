import type { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../time/clock.ts";

/** An agent's last sample of one pod. */
export interface PodSample {
  /** The monotonic time of arrival. */
  readonly atMs: number;
  /** The mean CPU usage over the window; undefined if unknown. */
  readonly cpuCores: number | undefined;
  readonly windowMs: number;
  /** The working set; undefined if unknown. */
  readonly memoryBytes: number | undefined;
  /** Custom metrics by name. */
  readonly values: ReadonlyMap<string, number>;
  /** The reason for missing values, or empty. */
  readonly problem: string;
  /** The times for which the pod had been running and ready; 0 if it was not. */
  readonly runningMs: number;
  readonly readyMs: number;
}

export interface PodMetricsOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The age at which samples are no longer used. */
  readonly lifeMs: number;
}

/** The most requested values. Further ones are dropped. */
const MAX_VALUES = 50;
const MAX_PROBLEM_LENGTH = 500;

/**
 * The newest samples of pods by uid. They are only in memory, because they are measured again
 * within seconds.
 */
export class PodMetrics {
  readonly #options: PodMetricsOptions;
  readonly #samples = new Map<string, PodSample>();

  constructor(options: PodMetricsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#samples.size;
  }

  /** Stores a sample. The caller must check that the pod belongs to the reporting node. */
  record(sample: PodMetricsSample): void {
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

  /** Returns the sample of a pod; undefined if there is none or it is too old. */
  get(podUid: string): PodSample | undefined {
    const sample = this.#samples.get(podUid);
    if (sample === undefined) return undefined;
    return sample.atMs + this.#options.lifeMs > this.#options.clock.monotonicMs() ? sample : undefined;
  }

  forget(podUid: string): void {
    this.#samples.delete(podUid);
  }
}
