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
  readonly reported: boolean;
}

/** Records one event when metrics are missing, and one when they are back. */
export class MissingMetrics {
  readonly #options: MissingMetricsOptions;
  readonly #missing = new Map<string, Missing>();

  constructor(options: MissingMetricsOptions) {
    this.#options = options;
  }

  update(namespace: string, name: string, metrics: readonly MetricResult[]): void {
    const { events, clock, graceMs } = this.#options;
    const kind = "container_service";
    const key = workloadKey(namespace, kind, name);
    const unknown = metrics.filter(({ replicas }) => replicas === undefined);
    const before = this.#missing.get(key);
    if (unknown.length === 0) {
      this.#missing.delete(key);
      if (!before?.reported) return;
      const message = `${before.names} is available again`;
      events.record({ namespace, kind, name, type: "Normal", reason: "MetricsKnown", message });
      return;
    }
    const names = unknown.map(({ target }) => target.name).join(", ");
    const nowMs = clock.monotonicMs();
    const sinceMs = before?.names === names ? before.sinceMs : nowMs;
    const reported = before?.names === names && before.reported;
    this.#missing.set(key, { sinceMs, names, reported: reported || nowMs - sinceMs >= graceMs });
    if (reported || nowMs - sinceMs < graceMs) return;
    const whys = unknown.map(({ target, message }) => `${target.name}: ${message}`).join("; ");
    const message = `replicas are not reduced, because a metric is unknown (${whys})`;
    events.record({ namespace, kind, name, type: "Warning", reason: "MetricsMissing", message });
  }

  forget(key: string): void {
    this.#missing.delete(key);
  }
}
