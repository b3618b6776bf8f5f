import { decodeRecord } from "../model/codec.ts";
import type { StoredRecord } from "../store/index.ts";
import { IndexMap } from "./index-map.ts";

/** A record with the revision that last changed it, which writers compare. */
export interface RecordEntry<T> {
  readonly key: string;
  readonly revision: number;
  readonly record: T;
}

interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

/** Holds all records of one kind, by their keys in the store and by groups. */
export class RecordView<T> {
  readonly #type: Decoder<T>;
  readonly #entries: IndexMap<RecordEntry<T>>;

  constructor(type: Decoder<T>, groupsOf: (record: T) => readonly string[] = () => []) {
    this.#type = type;
    this.#entries = new IndexMap(({ record }) => groupsOf(record));
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): RecordEntry<T> | undefined {
    return this.#entries.get(key);
  }

  group(name: string): RecordEntry<T>[] {
    return this.#entries.group(name);
  }

  all(): RecordEntry<T>[] {
    return this.#entries.values();
  }

  apply(
    key: string,
    stored: StoredRecord | undefined,
  ): { readonly before: RecordEntry<T> | undefined; readonly after: RecordEntry<T> | undefined } {
    const after = stored && {
      key,
      revision: stored.modRevision,
      record: decodeRecord(this.#type, key, stored.value),
    };
    return { before: this.#entries.set(key, after), after };
  }
}
