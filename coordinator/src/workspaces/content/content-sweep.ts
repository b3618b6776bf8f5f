import type { Log } from "@forage/common/log";
import type { Clock } from "../../time/clock.ts";
import type { ContentStore } from "./content-store.ts";
import { OrphanAges } from "./orphan-ages.ts";

export interface ContentSweepOptions {
  readonly store: ContentStore;
  /** Whether a record names the object: a generation, a snapshot, or a transfer that may still store it. */
  readonly isNamed: (object: string) => boolean;
  /** Whether all records are loaded. Nothing is deleted before. */
  readonly isReady: () => boolean;
  /** Called before each sweep, such as to remove records that have expired. */
  readonly before?: () => Promise<void>;
  /** The time that an object must be without a record before it is deleted. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/** Listing 100,000 objects takes seconds, and orphans are rare. */
const INTERVAL_MS = 60 * 60 * 1000;
/** Objects that one sweep fails to delete. */
const MAX_FAILED = 100;
/**
 * Deletes objects that no record names. The grace period is measured with the monotonic clock from the first sweep that finds the
 * object without a record: neither a wall clock that jumps nor a restart of the coordinator shortens it.
 */
export class ContentSweep {
  readonly #options: ContentSweepOptions;
  readonly #ages: OrphanAges;
  #cancel = (): void => {};
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ContentSweepOptions) {
    this.#options = options;
    this.#ages = new OrphanAges(options.clock.monotonicMs);
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
    const { store, isNamed, isReady, graceMs, before } = this.#options;
    if (!isReady()) return 0;
    // A record that could not be removed still names its object, so the sweep keeps that object.
    await before?.().catch((err: unknown) => this.#warn(err));
    const sweep = this.#ages.begin();
    let deleted = 0;
    let failed = 0;
    for await (const { object } of store.list("")) {
      if (this.#closed) return deleted;
      if (isNamed(object) || !sweep.isDue(object, graceMs)) continue;
      try {
        await store.delete(object);
        deleted += 1;
      } catch (err) {
        // An object that can't be deleted keeps none of the others. A store that takes no deletions at all is left alone.
        this.#warn(err, object);
        failed += 1;
        if (failed >= MAX_FAILED) break;
      }
    }
    sweep.finish();
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
      if (deleted > 0) log.info({ event: "content-orphans-deleted", deleted });
    } catch (err) {
      this.#warn(err);
    }
  }

  #warn(err: unknown, object?: string): void {
    this.#options.log.warn({ event: "content-sweep-failed", object, err });
  }
}
