import type { Log } from "@forage/common/log";
import type { Clock } from "../../time/clock.ts";
import type { ContentStore } from "./content-store.ts";
import { OrphanAges } from "./orphan-ages.ts";

export interface ContentSweepOptions {
  readonly store: ContentStore;
  /**
   * Reports whether a record refers to the object: a generation, a snapshot, or a transfer that may
   * still store it.
   */
  readonly isNamed: (object: string) => boolean;
  /** Reports whether all records are loaded. A sweep before that deletes nothing. */
  readonly isReady: () => boolean;
  /** Runs before each sweep, for example to remove expired records. */
  readonly before?: () => Promise<void>;
  /** The time for which an object must have had no record before it is deleted. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/** The interval between sweeps. Listing 100,000 objects takes seconds, and orphans are rare. */
const INTERVAL_MS = 60 * 60 * 1000;
/** The number of failed deletions after which a sweep ends. */
const MAX_FAILED = 100;
/**
 * Deletes objects that no record refers to. The grace period starts at the first sweep that finds
 * the object without a record, and is measured by the monotonic clock: neither a jump of the wall
 * clock nor a restart of the coordinator shortens it.
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

  /** Stops the sweeper. A sweep in progress ends after its current object. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
  }

  /** Deletes orphans that are due. Returns how many it deleted. */
  async sweep(): Promise<number> {
    const { store, isNamed, isReady, graceMs, before } = this.#options;
    if (!isReady()) return 0;
    // If an expired record can't be removed, it still refers to its object, so the sweep keeps that
    // object.
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
        // One failed deletion does not stop the sweep; many failures in one sweep do.
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
