import { PREFIXES } from "../model/keys.ts";
import { type Store, StoreError, type WatchBatch } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { EventLog, EventPage } from "./event-log.ts";
import type { EventLimits } from "./limits.ts";
import { Retention, sequenceOf } from "./retention.ts";
import { SharedRead } from "./shared-read.ts";
import { readEvents, Watchers } from "./watchers.ts";

export interface FollowedEventsOptions {
  readonly store: Store;
  readonly limits: EventLimits;
  readonly clock: Pick<Clock, "schedule">;
  /** Called when the events can no longer be followed. */
  readonly onFatal: (error: unknown) => void;
}

/** The events in a store to which another coordinator writes. */
export class FollowedEvents implements EventLog {
  readonly #store: Store;
  readonly #reads = new SharedRead();
  readonly #watchers: Watchers;
  #newest = 0;
  #removedThrough = 0;

  /** Reads the stored events, and follows them until the signal aborts. */
  static async open(options: FollowedEventsOptions, signal: AbortSignal): Promise<FollowedEvents> {
    const events = new FollowedEvents(options);
    const from = await events.#load(options.limits);
    events
      .#follow(from, options.limits, signal)
      .catch(options.onFatal)
      .finally(() => events.#watchers.close());
    return events;
  }

  private constructor({ store, clock }: FollowedEventsOptions) {
    this.#store = store;
    this.#watchers = new Watchers(clock);
  }

  get newest(): number {
    return this.#newest;
  }

  get removedThrough(): number {
    return this.#removedThrough;
  }

  read(after: number, limit: number): Promise<EventPage> {
    const question = { after, limit, newest: this.#newest };
    return this.#reads.read(question, () => readEvents(this.#store, after, limit));
  }

  subscribe(listener: () => void): () => void {
    return this.#watchers.add(listener);
  }

  /** Reads the stored events. Returns the revision after which the watch must continue. */
  async #load(limits: EventLimits): Promise<number> {
    const { revision } = this.#store;
    const retention = new Retention(this.#store, limits);
    await retention.load(({ sequence }) => {
      this.#newest = Math.max(this.#newest, Number(sequence));
    });
    this.#removedThrough = Math.max(this.#removedThrough, retention.removedThrough);
    return revision;
  }

  async #follow(from: number, limits: EventLimits, signal: AbortSignal): Promise<void> {
    for (let after = from; !signal.aborted; ) {
      try {
        for await (const batch of this.#store.watch(PREFIXES.events, after + 1, signal)) {
          after = batch.revision;
          this.#apply(batch);
        }
      } catch (error) {
        if (signal.aborted || isCode(error, "CLOSED")) return;
        if (!isCode(error, "SLOW") && !isCode(error, "COMPACTED")) throw error;
        after = await this.#load(limits);
        this.#watchers.wake();
      }
    }
  }

  #apply({ events }: WatchBatch): void {
    let removed = 0;
    let isWritten = false;
    for (const event of events) {
      const sequence = sequenceOf(event.type === "put" ? event.record.key : event.key);
      if (event.type === "delete") removed = Math.max(removed, sequence);
      else {
        isWritten = true;
        this.#newest = Math.max(this.#newest, sequence);
      }
    }
    // A repeated event is deleted in the same transaction that writes its new record. Old events
    // are removed without a write.
    if (!isWritten) this.#removedThrough = Math.max(this.#removedThrough, removed);
    else this.#watchers.wake();
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof StoreError && error.code === code;
}
