import type { Digest } from "../content-store.ts";

/** An entry of the index. `data` is the last segment of the key of the object's data. */
export interface IndexEntry extends Digest {
  readonly object: string;
  readonly data: string;
  readonly storedMs: number;
}

/**
 * Builds the keys of objects in a bucket: `PREFIXdata/OBJECT/RANDOM` and
 * `PREFIXindex/OBJECT@SIZE@SHA256@RANDOM`.
 */
export class S3Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Returns the key of an object's data. With two empty texts, returns the prefix of all data. */
  data(object: string, name: string): string {
    return object === "" ? `${this.#prefix}data/` : `${this.#prefix}data/${object}/${name}`;
  }

  /** Returns the prefix of the index entries of all objects under a prefix. */
  index(prefix: string): string {
    return `${this.#prefix}index/${prefix}`;
  }

  /** Returns the prefix of the index entries of one object. */
  entriesOf(object: string): string {
    return `${this.index(object)}@`;
  }

  entry({ object, sizeBytes, sha256, data }: Omit<IndexEntry, "storedMs">): string {
    return `${this.entriesOf(object)}${sizeBytes}@${sha256}@${data}`;
  }
}

/** Parses the key of an index entry. Returns undefined for other keys. */
export function parseIndexKey(keys: S3Keys, key: string): Omit<IndexEntry, "storedMs"> | undefined {
  const match = /^([^@]+)@(\d{1,15})@([0-9a-f]{64})@(\w+)$/.exec(key.slice(keys.index("").length));
  const [, object = "", size = "", sha256 = "", data = ""] = match ?? [];
  return match === null ? undefined : { object, sizeBytes: Number(size), sha256, data };
}
