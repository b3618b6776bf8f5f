import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { eventKey, PREFIXES } from "../model/keys.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import type { EventLimits } from "./limits.ts";

/** The number of records in one read at the start. */
const PAGE_SIZE = 500;
/** The most records removed in one transaction. */
const MAX_REMOVED_AT_ONCE = 100;
/**
 * The share that is removed in addition, so that a full log needs an extra write only occasionally.
 */
const SLACK = 0.05;

/** Limits the number and size of stored events by removing the oldest ones. */
export class Retention {
  readonly #store: Store;
  readonly #limits: EventLimits;
  #count = 0;
  #bytes = 0;
  #removedThrough = 0;
  /**
   * A key below which there are no events. Reads start here, because the store is slow at keys that
   * were deleted recently.
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
    // It is not recorded which missing numbers were removed because of their age. If the log is
    // nearly full, some were removed.
    const { maxCount, maxBytes } = this.#limits;
    if (this.#isOver(maxCount * (1 - 2 * SLACK), maxBytes * (1 - 2 * SLACK)))
      this.#removedThrough = (oldest ?? 1) - 1;
  }

  /** Counts a written event, which may replace an earlier one of `replacedBytes` bytes. */
  add(bytes: number, replacedBytes?: number): void {
    this.#bytes += bytes - (replacedBytes ?? 0);
    if (replacedBytes === undefined) this.#count++;
  }

  /** Removes the oldest events beyond the limits. Returns the number of the last removed one. */
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
      await this.#remove(going);
      this.#emptyThrough = last.key;
      this.#bytes -= bytes;
      this.#count -= going.length;
    }
    return this.#removedThrough;
  }

  /**
   * Removes records. They count as removed before the store acknowledges it, because readers may
   * already miss them.
   */
  async #remove(going: readonly StoredRecord[]): Promise<void> {
    const before = this.#removedThrough;
    this.#removedThrough = sequenceOf(going.at(-1)?.key ?? "");
    try {
      await this.#store.txn(
        [],
        going.map(({ key }) => ({ type: "delete", key })),
      );
    } catch (error) {
      this.#removedThrough = before;
      throw error;
    }
  }

  #isOver(count: number, bytes: number): boolean {
    return this.#count > count || this.#bytes > bytes;
  }
}

/**
 * Decodes a record. Returns undefined if that fails; the record then counts towards the limits, and
 * is removed when it is the oldest.
 */
export function readable(key: string, value: Uint8Array): EventRecord | undefined {
  try {
    return decodeRecord(EventRecord, key, value);
  } catch {
    return undefined;
  }
}

/** Returns the number in an event's key, or 0 for a key without one. */
export function sequenceOf(key: string): number {
  const sequence = Number(key.slice(PREFIXES.events.length));
  return Number.isSafeInteger(sequence) ? sequence : 0;
}
