import type { Revision, StoreHealth } from "../store.ts";
import type { StoreError } from "../store-error.ts";
import type { Commit } from "./timeline.ts";

/** Makes commits durable. The memory engine's does so at once; the level engine's in groups. */
export interface Journal {
  /** Takes the next commit; answers through the listener, in order. */
  append(commit: Commit): void;
  /**
   * Makes a later revision the oldest that is read after a restart: the one given or, to keep each step small, one
   * before it. Resolves with it when that is durable; the timeline must then be compacted to it.
   */
  fold(revision: Revision): Promise<Revision>;
  health(): StoreHealth;
  /** Writes what was taken, then lets go of everything. */
  close(): Promise<void>;
}

export interface JournalListener {
  /** Called when all commits up to this revision are durable. */
  durable(revision: Revision): void;
  /** Called when what waits will not become durable soon. It may still do so later. */
  stalled(error: StoreError): void;
  /** Called when no further write will become durable. */
  failed(error: StoreError): void;
}
