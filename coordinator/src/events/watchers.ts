import { CoordinatorError } from "../errors.ts";
import { eventKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { EventPage } from "./event-log.ts";
import { MAX_WATCHERS, WATCHERS_AT_ONCE, WATCHERS_PAUSE_MS } from "./limits.ts";
import { readable, sequenceOf } from "./retention.ts";

/**
 * Notifies the watchers of events, up to a limit. Many watchers are notified in groups with pauses,
 * so that they can't use a whole processor.
 */
export class Watchers {
  readonly #schedule: Clock["schedule"];
  readonly #listeners = new Set<() => void>();
  /** The listeners of the groups that were not called yet, in order. */
  readonly #waiting = new Set<() => void>();
  #cancelNext: (() => void) | undefined;

  constructor({ schedule }: Pick<Clock, "schedule">) {
    this.#schedule = schedule;
  }

  /**
   * Adds a listener. Returns a function that removes it. @throws CoordinatorError
   * RESOURCE_EXHAUSTED if there are too many.
   */
  add(listener: () => void): () => void {
    if (this.#listeners.size >= MAX_WATCHERS)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_WATCHERS} others watch events; try again later`,
      );
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      this.#waiting.delete(listener);
    };
  }

  /** Calls all listeners, group by group. */
  wake(): void {
    for (const listener of this.#listeners) this.#waiting.add(listener);
    if (this.#cancelNext === undefined) this.#callNext();
  }

  /** Stops all calls of listeners. */
  close(): void {
    this.#cancelNext?.();
    this.#listeners.clear();
    this.#waiting.clear();
  }

  #callNext(): void {
    this.#cancelNext = undefined;
    let called = 0;
    for (const listener of this.#waiting) {
      if (called === WATCHERS_AT_ONCE) break;
      called += 1;
      this.#waiting.delete(listener);
      listener();
    }
    // There is also a pause after the last group, even if writes are frequent.
    if (called > 0 && this.#listeners.size > WATCHERS_AT_ONCE)
      this.#cancelNext = this.#schedule(WATCHERS_PAUSE_MS, () => this.#callNext());
  }
}

/** Reads the events with higher numbers. */
export async function readEvents(store: Store, after: number, limit: number): Promise<EventPage> {
  const { records, more } = await store.range(PREFIXES.events, { after: eventKey(after), limit });
  const events = records.flatMap(({ key, value }) => readable(key, value) ?? []);
  return { events, more, through: Math.max(after, ...records.map(({ key }) => sequenceOf(key))) };
}
