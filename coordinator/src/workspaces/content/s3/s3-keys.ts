import type { Digest } from "../content-store.ts";

/** An entry of the index. `data` is the last segment of the key under which the object's data lies. */
export interface IndexEntry extends Digest {
  readonly object: string;
  readonly data: string;
  readonly storedMs: number;
}

/** The keys of the objects in a bucket: `PREFIXdata/OBJECT/RANDOM` and `PREFIXindex/OBJECT@SIZE@SHA256@RANDOM`. */
export class S3Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The key of an object's data, or, for two empty texts, the prefix of all data. */
  data(object: string, name: string): string {
    return object === "" ? `${this.#prefix}data/` : `${this.#prefix}data/${object}/${name}`;
  }

  /** The prefix of the entries of all objects under a prefix. */
  index(prefix: string): string {
    return `${this.#prefix}index/${prefix}`;
  }

  /** The prefix of the entries of one object. */
  entriesOf(object: string): string {
    return `${this.index(object)}@`;
  }

  entry({ object, sizeBytes, sha256, data }: Omit<IndexEntry, "storedMs">): string {
    return `${this.entriesOf(object)}${sizeBytes}@${sha256}@${data}`;
  }
}

/** Returns undefined for a key that is no entry. */
export function parseIndexKey(keys: S3Keys, key: string): Omit<IndexEntry, "storedMs"> | undefined {
  const match = /^([^@]+)@(\d{1,15})@([0-9a-f]{64})@(\w+)$/.exec(key.slice(keys.index("").length));
  const [, object = "", size = "", sha256 = "", data = ""] = match ?? [];
  return match === null ? undefined : { object, sizeBytes: Number(size), sha256, data };
}
