import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { eventKey, PREFIXES } from "../model/keys.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import type { EventLimits } from "./limits.ts";

/** Records read in one piece at the start. */
const PAGE_SIZE = 500;
/** Removed in one transaction. */
const MAX_REMOVED_AT_ONCE = 100;
/** Removes a little more than necessary, so that a full log costs an extra write only now and then. */
const SLACK = 0.05;

/** Limits the number of stored events, and removes the oldest. */
export class Retention {
  readonly #store: Store;
  readonly #limits: EventLimits;
  #count = 0;
  #bytes = 0;
  #removedThrough = 0;
  /**
   * No event has a key up to this one. Reading starts after it, because the store keeps the keys of deleted events for a
   * while.
   */
  #emptyThrough: string = PREFIXES.events;

  constructor(store: Store, limits: EventLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get removedThrough(): number {
    return this.#removedThrough;
  }

  /** Reads all stored events, oldest first. */
  async load(each: (record: EventRecord, bytes: number) => void): Promise<void> {
    let oldest: number | undefined;
    for (let after: string | undefined, more = true; more; ) {
      const page = await this.#store.range(PREFIXES.events, {
        limit: PAGE_SIZE,
        ...(after !== undefined && { after }),
      });
      for (const { key, value } of page.records) {
        this.add(value.byteLength);
        const record = readable(key, value);
        if (record === undefined) continue;
        oldest ??= sequenceOf(key);
        each(record, value.byteLength);
      }
      after = page.records.at(-1)?.key;
      more = page.more;
    }
    if (oldest !== undefined) this.#emptyThrough = eventKey(oldest - 1);
    // Which numbers are missing because they were old isn't written down; a log that is nearly full has removed some.
    const { maxCount, maxBytes } = this.#limits;
    if (this.#isOver(maxCount * (1 - 2 * SLACK), maxBytes * (1 - 2 * SLACK)))
      this.#removedThrough = (oldest ?? 1) - 1;
  }

  /** One was written, perhaps in place of an earlier one of so many bytes. */
  add(bytes: number, replacedBytes?: number): void {
    this.#bytes += bytes - (replacedBytes ?? 0);
    if (replacedBytes === undefined) this.#count++;
  }

  /** Removes the oldest events if there are too many. Returns the number of the last removed one. */
  async removeOldest(): Promise<number> {
    const { maxCount, maxBytes } = this.#limits;
    if (this.#count <= maxCount && this.#bytes <= maxBytes) return this.#removedThrough;
    while (this.#isOver(maxCount * (1 - SLACK), maxBytes * (1 - SLACK))) {
      const { records } = await this.#store.range(PREFIXES.events, {
        limit: MAX_REMOVED_AT_ONCE,
        after: this.#emptyThrough,
      });
      const going: StoredRecord[] = [];
      let bytes = 0;
      for (const record of records) {
        if (!this.#isOver(maxCount * (1 - SLACK) + going.length, maxBytes * (1 - SLACK) + bytes)) break;
        going.push(record);
        bytes += record.value.byteLength;
      }
      const last = going.at(-1);
      if (last === undefined) break;
      await this.#store.txn(
        [],
        going.map(({ key }) => ({ kind: "delete", key })),
      );
      this.#emptyThrough = last.key;
      this.#bytes -= bytes;
      this.#count -= going.length;
      this.#removedThrough = sequenceOf(last.key);
    }
    return this.#removedThrough;
  }

  #isOver(count: number, bytes: number): boolean {
    return this.#count > count || this.#bytes > bytes;
  }
}

/** Undefined: the record can't be decoded. It is not shown, counts towards the limits, and goes when it is the oldest. */
export function readable(key: string, value: Uint8Array): EventRecord | undefined {
  try {
    return decodeRecord(EventRecord, key, value);
  } catch {
    return undefined;
  }
}

/** Returns the number of an event's key. 0 for a key that holds none. */
export function sequenceOf(key: string): number {
  const sequence = Number(key.slice(PREFIXES.events.length));
  return Number.isSafeInteger(sequence) ? sequence : 0;
}
