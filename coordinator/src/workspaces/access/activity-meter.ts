import type { Clock } from "@forage/common/clock";
import { type ActivitySink, REPORT_INTERVAL_MS } from "./workspace-directory.ts";

interface Usage {
  open: number;
  reportedMs: number;
}

/**
 * Reports workspaces with open connections or requests as active: whenever one opens, and regularly
 * while one is open.
 */
export class ActivityMeter {
  readonly #sink: ActivitySink;
  readonly #clock: Clock;
  /** Workspaces that have an open connection or request, or that were reported recently. */
  readonly #usages = new Map<string, Usage>();
  #cancel: (() => void) | undefined;

  constructor(sink: ActivitySink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  /** Returns the number of open connections and requests of a workspace. */
  openOf(instanceId: string): number {
    return this.#usages.get(instanceId)?.open ?? 0;
  }

  /**
   * Counts one more open connection or request. Returns a function that ends it; repeated calls
   * have no effect.
   */
  begin(instanceId: string): () => void {
    const usage = this.#usages.get(instanceId) ?? { open: 0, reportedMs: Number.NEGATIVE_INFINITY };
    this.#usages.set(instanceId, usage);
    usage.open += 1;
    this.#report(instanceId, usage);
    this.#arm();
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      usage.open -= 1;
    };
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#usages.clear();
  }

  #arm(): void {
    this.#cancel ??= this.#clock.schedule(REPORT_INTERVAL_MS, () => {
      this.#cancel = undefined;
      for (const [instanceId, usage] of this.#usages) {
        if (usage.open > 0) this.#report(instanceId, usage);
        else this.#usages.delete(instanceId);
      }
      if (this.#usages.size > 0) this.#arm();
    });
  }

  #report(instanceId: string, usage: Usage): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < usage.reportedMs + REPORT_INTERVAL_MS) return;
    usage.reportedMs = nowMs;
    this.#sink.markActive(instanceId);
  }
}
