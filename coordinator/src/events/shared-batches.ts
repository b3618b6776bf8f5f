import type { EventRecord } from "@forage/proto/forage/store/v1/store";
import type { EventPage } from "./event-log.ts";
import { type EventBatch, type EventQuery, matching } from "./query.ts";

/**
 * Shares results among watchers with equal queries: the selected events, and the encoded message.
 * The results belong to the page, an object that all of its readers share.
 */
export class SharedBatches {
  readonly #encode: (batch: EventBatch) => Uint8Array;
  readonly #selected = new WeakMap<EventPage, Map<string, readonly EventRecord[]>>();
  readonly #encoded = new WeakMap<readonly EventRecord[], Uint8Array>();

  constructor(encode: (batch: EventBatch) => Uint8Array) {
    this.#encode = encode;
  }

  /** Returns the events of the page that the query selects. Equal queries get the same array. */
  readonly select = (query: EventQuery, page: EventPage): readonly EventRecord[] => {
    const ofPage = this.#selected.get(page) ?? new Map<string, readonly EventRecord[]>();
    this.#selected.set(page, ofPage);
    const key = JSON.stringify(query);
    const known = ofPage.get(key);
    if (known !== undefined) return known;
    const events = matching(query, page);
    ofPage.set(key, events);
    return events;
  };

  /** Returns the encoded batch, whose events are from `select`. */
  encoded(batch: EventBatch): Uint8Array {
    // A gap depends on the watcher, so such a batch is not shared.
    if (batch.gap) return this.#encode(batch);
    const known = this.#encoded.get(batch.events);
    if (known !== undefined) return known;
    const bytes = this.#encode(batch);
    this.#encoded.set(batch.events, bytes);
    return bytes;
  }
}
