import type { Logger } from "pino";
import type { Clock } from "../../time/clock.ts";
import type { ContentStore } from "./content-store.ts";

export interface ContentSweepOptions {
  readonly store: ContentStore;
  /** Whether a record names the object: a generation, a snapshot, or a transfer that may still store it. */
  readonly isNamed: (object: string) => boolean;
  /** Whether all records are loaded. Nothing is deleted before. */
  readonly isReady: () => boolean;
  /** How long an object must be without a record before it is deleted. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** Listing 100,000 objects takes seconds, and orphans are rare. */
const INTERVAL_MS = 60 * 60 * 1000;
/** Orphans beyond this number are found by later sweeps; each takes some hundred bytes. */
const MAX_TRACKED = 100_000;

/**
 * Deletes objects that no record names. The grace period is measured with the monotonic clock from the first sweep that finds the
 * object without a record: neither a wall clock that jumps nor a restart of the coordinator shortens it.
 */
export class ContentSweep {
  readonly #options: ContentSweepOptions;
  #firstSeenMs: ReadonlyMap<string, number> = new Map();
  #cancel = (): void => {};
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ContentSweepOptions) {
    this.#options = options;
    this.#later();
  }

  /** Ends after the sweep in progress, which stops at its next object. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
  }

  /** Returns how many objects it deleted. */
  async sweep(): Promise<number> {
    const { store, isNamed, isReady, graceMs, clock } = this.#options;
    if (!isReady()) return 0;
    const seen = new Map<string, number>();
    let deleted = 0;
    for await (const { object } of store.list("")) {
      if (this.#closed) return deleted;
      if (isNamed(object) || seen.size >= MAX_TRACKED) continue;
      const firstMs = this.#firstSeenMs.get(object) ?? clock.monotonicMs();
      if (clock.monotonicMs() < firstMs + graceMs) {
        seen.set(object, firstMs);
        continue;
      }
      await store.delete(object);
      deleted += 1;
    }
    this.#firstSeenMs = seen;
    await store.removeRemains?.(graceMs);
    return deleted;
  }

  #later(): void {
    this.#cancel = this.#options.clock.schedule(INTERVAL_MS, () => {
      this.#running = this.#run();
      this.#later();
    });
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    try {
      const deleted = await this.sweep();
      if (deleted > 0) log.info({ event: "content-orphans-deleted", deleted }, "content-orphans-deleted");
    } catch (err) {
      log.warn({ event: "content-sweep-failed", err }, "content-sweep-failed");
    }
  }
}
