import type { Log } from "@forage/common/log";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import type { Store } from "../store/index.ts";

export interface StoredRecordsOptions {
  readonly store: Pick<Store, "range" | "txn">;
  readonly log: Pick<Log, "warn">;
  /** The prefix of the records' keys. */
  readonly prefix: string;
}

/** The most records that are read: more than any coordinator stores. */
const MAX_READ = 1_000;

/**
 * Stores state of browsers so that it survives a restart of the coordinator. A key is the prefix
 * and the record's id.
 */
export class StoredRecords<Content extends object> {
  readonly #options: StoredRecordsOptions;
  readonly #known: (readonly [id: string, Content])[];
  #writes: Promise<void> = Promise.resolve();

  /**
   * Reads the stored records. If that fails, users must log in again, but the coordinator still
   * starts.
   */
  static async open<Content extends object>(options: StoredRecordsOptions): Promise<StoredRecords<Content>> {
    const { store, log, prefix } = options;
    try {
      const { records } = await store.range(prefix, { limit: MAX_READ });
      const known = records.map(
        ({ key, value }) => [key.slice(prefix.length), decodeJsonRecord<Content>(key, value)] as const,
      );
      return new StoredRecords(options, known);
    } catch (err) {
      log.warn({ event: "dashboard-records-not-read", prefix, err });
      return new StoredRecords<Content>(options, []);
    }
  }

  private constructor(options: StoredRecordsOptions, known: readonly (readonly [string, Content])[]) {
    this.#options = options;
    this.#known = [...known];
  }

  /** Returns the records that were read at the start. Later calls return none. */
  drain(): readonly (readonly [id: string, Content])[] {
    return this.#known.splice(0);
  }

  put(id: string, content: Content): void {
    this.#write({ type: "put", key: this.#key(id), value: encodeJsonRecord(content) });
  }

  delete(id: string): void {
    this.#write({ type: "delete", key: this.#key(id) });
  }

  /** Resolves when all changes so far are stored or have failed. */
  settled(): Promise<void> {
    return this.#writes;
  }

  #key(id: string): string {
    return `${this.#options.prefix}${id}`;
  }

  /**
   * Writes one change at a time, so that the end of a record follows its start. A record that can't
   * be stored ends with this coordinator.
   */
  #write(op: Parameters<Store["txn"]>[1][number]): void {
    const { store, log, prefix } = this.#options;
    this.#writes = this.#writes
      .then(async () => void (await store.txn([], [op])))
      .catch((err: unknown) => log.warn({ event: "dashboard-record-not-stored", prefix, err }));
  }
}
