import type { Clock } from "../clock.ts";
import { StoreEngine } from "../core/store-engine.ts";
import { Timeline } from "../core/timeline.ts";
import type { Store } from "../store.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  /** Revisions of history to keep; HISTORY_REVISIONS by default. */
  readonly historyRevisions?: number;
}

/** A store that lasts as long as its process: for tests and the simulation. */
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
