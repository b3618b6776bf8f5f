import type { Clock } from "../clock.ts";
import { StoreEngine } from "../core/store-engine.ts";
import { Timeline } from "../core/timeline.ts";
import type { Store } from "../store.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  /** The number of revisions of history to keep. Default: HISTORY_REVISIONS. */
  readonly historyRevisions?: number;
  /** The time that a revision is kept. Default: no limit. */
  readonly historyAgeMs?: number;
}

/** Returns a store without durable storage, for tests and simulations. */
export function createMemoryStore(options: MemoryStoreOptions): Store {
  return new StoreEngine({
    ...options,
    timeline: new Timeline(),
    leaseIdPrefix: "",
    openJournal: (listener) => ({
      append: (commit) => listener.durable(commit.revision),
      fold: async (revision) => revision,
      health: () => ({ status: "ok" }),
      close: async () => {},
    }),
  });
}
