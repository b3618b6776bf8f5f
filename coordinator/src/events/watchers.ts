import { CoordinatorError } from "../errors.ts";
import { eventKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { EventPage } from "./event-log.ts";
import { MAX_WATCHERS } from "./limits.ts";
import { readable, sequenceOf } from "./retention.ts";

/** The watchers of events, up to a limit. */
export class Watchers {
  readonly #listeners = new Set<() => void>();

  /** Returns how to stop. @throws CoordinatorError RESOURCE_EXHAUSTED when too many watch. */
  add(listener: () => void): () => void {
    if (this.#listeners.size >= MAX_WATCHERS)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_WATCHERS} others watch events; try again later`,
      );
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Reads the events with higher numbers. */
export async function readEvents(store: Store, after: number, limit: number): Promise<EventPage> {
  const { records, more } = await store.range(PREFIXES.events, { after: eventKey(after), limit });
  const events = records.flatMap(({ key, value }) => readable(key, value) ?? []);
  return { events, more, through: Math.max(after, ...records.map(({ key }) => sequenceOf(key))) };
}
