import type { EventRecorder } from "../../model/event.ts";
import { workloadKey } from "../../model/workload.ts";
import type { Clock } from "../../time/clock.ts";
import type { MetricResult } from "./reading.ts";

export interface MissingMetricsOptions {
  readonly events: EventRecorder;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The grace period for pods and coordinators that have just started and have no samples yet. */
  readonly graceMs: number;
}

interface Missing {
  readonly sinceMs: number;
  readonly names: string;
  readonly told: boolean;
}

/** Records one event when metrics are missing, and one when they are back. */
export class MissingMetrics {
  readonly #options: MissingMetricsOptions;
  readonly #missing = new Map<string, Missing>();

  constructor(options: MissingMetricsOptions) {
    this.#options = options;
  }

  look(namespace: string, name: string, metrics: readonly MetricResult[]): void {
    const { events, clock, graceMs } = this.#options;
    const kind = "container_service";
    const key = workloadKey(namespace, kind, name);
    const unknown = metrics.filter(({ replicas }) => replicas === undefined);
    const before = this.#missing.get(key);
    if (unknown.length === 0) {
      this.#missing.delete(key);
      if (!before?.told) return;
      const message = `${before.names} can be had again`;
      events.record({ namespace, kind, name, type: "Normal", reason: "MetricsKnown", message });
      return;
    }
    const names = unknown.map(({ target }) => target.name).join(", ");
    const nowMs = clock.monotonicMs();
    const sinceMs = before?.names === names ? before.sinceMs : nowMs;
    const told = before?.names === names && before.told;
    this.#missing.set(key, { sinceMs, names, told: told || nowMs - sinceMs >= graceMs });
    if (told || nowMs - sinceMs < graceMs) return;
    const whys = unknown.map(({ target, message }) => `${target.name}: ${message}`).join("; ");
    const message = `replicas aren't reduced, since a metric isn't known (${whys})`;
    events.record({ namespace, kind, name, type: "Warning", reason: "MetricsMissing", message });
  }

  forget(key: string): void {
    this.#missing.delete(key);
  }
}
