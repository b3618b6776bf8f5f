import type { Revision, StoreHealth } from "../store.ts";
import type { StoreError } from "../store-error.ts";
import type { Commit } from "./timeline.ts";

/** Makes commits durable. The journal of the memory engine does so at once, the others in groups. */
export interface Journal {
  /** Queues the next commit. The listener is called in order when commits are durable. */
  append(commit: Commit): void;
  /**
   * Makes the given revision the oldest that is read after a restart, or an earlier one to limit the size of a step.
   * Resolves with that revision once it is durable. The caller must then compact the timeline to it.
   */
  fold(revision: Revision): Promise<Revision>;
  health(): StoreHealth;
  /** Writes the queued commits and releases all resources. */
  close(): Promise<void>;
}

export interface JournalListener {
  /** Called when all commits up to this revision are durable. */
  durable(revision: Revision): void;
  /** Called when queued commits will not become durable soon. They may still do so later. */
  stalled(error: StoreError): void;
  /** Called when no further commit will become durable. */
  failed(error: StoreError): void;
}
