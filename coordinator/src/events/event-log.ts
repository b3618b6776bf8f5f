import type { EventRecord } from "@forage/proto/forage/store/v1/store";

export interface EventPage {
  /** Oldest first. */
  readonly events: readonly EventRecord[];
  /** Whether there are more after these. */
  readonly more: boolean;
  /** Number of the last record that was read. It may be unreadable, and so not among the events. */
  readonly through: number;
}

/** The events that are kept. They lie in the store only, not a second time in the view. */
export interface EventLog {
  /** Number of the newest event that was written. */
  readonly newest: number;
  /** Events up to this number were removed because of their age. */
  readonly removedThrough: number;
  /** Reads the events with higher numbers. */
  read(after: number, limit: number): Promise<EventPage>;
  /** Calls after events were written. Returns how to stop. @throws CoordinatorError RESOURCE_EXHAUSTED when too many watch. */
  subscribe(listener: () => void): () => void;
}
