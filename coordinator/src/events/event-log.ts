import type { EventRecord } from "@forage/proto/forage/store/v1/store";

export interface EventPage {
  /** The events, oldest first. */
  readonly events: readonly EventRecord[];
  /** Whether there are more events after these. */
  readonly more: boolean;
  /**
   * The number of the last record that was read. It may be unreadable, and so not among the events.
   */
  readonly through: number;
}

/** Reads the stored events. They are only in the store, and not in the cluster view. */
export interface EventLog {
  /** The number of the newest written event. */
  readonly newest: number;
  /** The number up to which events were removed because of their age. */
  readonly removedThrough: number;
  /** Reads the events with higher numbers. */
  read(after: number, limit: number): Promise<EventPage>;
  /**
   * Calls the listener after events were written. Returns a function that ends this. @throws
   * CoordinatorError RESOURCE_EXHAUSTED if there are too many watchers.
   */
  subscribe(listener: () => void): () => void;
}
