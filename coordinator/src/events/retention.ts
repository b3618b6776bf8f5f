import { EventRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { prefixes } from "../model/keys.ts";
import type { Store } from "../store/index.ts";
import type { EventLimits } from "./limits.ts";

/** Records read in one piece at the start. */
const pageSize = 500;
/** Removed in one transaction, so that a full log costs one more write in so many and not one per event; but never much of it. */
const maxRemovedAtOnce = 100;
const removedShare = 0.1;

/** How much is kept, and the removal of the oldest. */
export class Retention {
  readonly #store: Store;
  readonly #limits: EventLimits;
  readonly #removedAtOnce: number;
  #count = 0;
  #bytes = 0;
  #removedThrough = 0;

  constructor(store: Store, limits: EventLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#removedAtOnce = Math.min(maxRemovedAtOnce, Math.ceil(limits.maxCount * removedShare));
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

  /** Looks at all that there are, oldest first. */
  async load(each: (record: EventRecord, bytes: number) => void): Promise<void> {
    let oldest: number | undefined;
    for (let after: string | undefined, more = true; more; ) {
      const page = await this.#store.range(prefixes.events, {
        limit: pageSize,
        ...(after !== undefined && { after }),
      });
      for (const { key, value } of page.records) {
        const record = decodeRecord(EventRecord, key, value);
        oldest ??= Number(record.sequence);
        this.add(value.byteLength);
        each(record, value.byteLength);
      }
      after = page.records.at(-1)?.key;
      more = page.more;
    }
    // Which numbers are missing because they were old isn't written down; a log that is nearly full has removed some.
    if (this.#count + this.#removedAtOnce > this.#limits.maxCount) this.#removedThrough = (oldest ?? 1) - 1;
  }

  /** One was written, perhaps in place of an earlier one of so many bytes. */
  add(bytes: number, replacedBytes?: number): void {
    this.#bytes += bytes - (replacedBytes ?? 0);
    if (replacedBytes === undefined) this.#count++;
  }

  /** Makes room if there is too much. Answers up to which number events are gone. */
  async removeOldest(): Promise<number> {
    const { maxCount, maxBytes } = this.#limits;
    while (this.#count > maxCount || this.#bytes > maxBytes) {
      const { records } = await this.#store.range(prefixes.events, { limit: this.#removedAtOnce });
      const last = records.at(-1);
      if (last === undefined) break;
      await this.#store.txn(
        [],
        records.map(({ key }) => ({ kind: "delete", key })),
      );
      for (const { value } of records) this.#bytes -= value.byteLength;
      this.#count -= records.length;
      this.#removedThrough = Number(decodeRecord(EventRecord, last.key, last.value).sequence);
    }
    return this.#removedThrough;
  }
}
