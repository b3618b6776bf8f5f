import { CoordinatorError } from "../errors.ts";
import { eventKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { EventPage } from "./event-log.ts";
import { MAX_WATCHERS, WATCHERS_AT_ONCE, WATCHERS_PAUSE_MS } from "./limits.ts";
import { readable, sequenceOf } from "./retention.ts";

/** The watchers of events, up to a limit. Many of them get new events in turns, so that they can't take all of the processor. */
export class Watchers {
  readonly #schedule: Clock["schedule"];
  readonly #listeners = new Set<() => void>();
  /** The listeners that wait for their turn, in order. */
  readonly #waiting = new Set<() => void>();
  #cancelNext: (() => void) | undefined;

  constructor({ schedule }: Pick<Clock, "schedule">) {
    this.#schedule = schedule;
  }

  /** Returns how to stop. @throws CoordinatorError RESOURCE_EXHAUSTED when too many watch. */
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

  /** Calls all listeners, each within its turn. */
  wake(): void {
    for (const listener of this.#listeners) this.#waiting.add(listener);
    if (this.#cancelNext === undefined) this.#callNext();
  }

  /** Calls no listener any more. */
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
    // Also after the last ones, so that frequent writes don't shorten the pause.
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
