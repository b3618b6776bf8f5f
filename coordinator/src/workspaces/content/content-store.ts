/** The size and the SHA-256 digest (lowercase hex) of an archive. */
export interface Digest {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** An archive that is stored completely and durably, and whose size and digest were verified. */
export interface StoredObject extends Digest {
  readonly object: string;
  /** Wall-clock time at which the archive was stored, in milliseconds since the epoch. */
  readonly storedMs: number;
}

/**
 * An object in a listing. Some implementations need a request for each digest, so listings leave
 * the digest out.
 */
export type ListedObject = Omit<StoredObject, "sha256">;

export interface PutOptions {
  /** The size limit of the archive. */
  readonly maxBytes: number;
  /** Called once, after the last byte and before the object becomes visible. It throws to refuse the archive. */
  readonly verify: (actual: Digest) => void;
  /** The size of the archive if known in advance: S3 needs larger parts for very large archives. */
  readonly expectedBytes?: number;
  readonly signal: AbortSignal;
}

export interface ReadOptions {
  readonly offsetBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Holds the archives of workspaces. An object becomes visible only when it is complete, durable and
 * verified. Names follow `object-name.ts`. Every method throws CoordinatorError.
 */
export interface ContentStore {
  /** The name of the store in snapshot URLs (`OBJECT@NAME`). */
  readonly name: string;
  /**
   * Stores an archive of any size in bounded memory, and atomically replaces an object of the same
   * name. If it throws, the former object is unchanged.
   */
  put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject>;
  /**
   * Reads from an offset to the end. Throws NOT_FOUND, or OUT_OF_RANGE for an offset beyond the
   * end. If the object is replaced or deleted during the read, the read still returns the archive
   * that it began with, or it throws.
   */
  read(object: string, options: ReadOptions): AsyncIterable<Uint8Array>;
  /** Returns the object, or undefined if there is none. */
  stat(object: string): Promise<StoredObject | undefined>;
  /**
   * Lists all objects, or those under a prefix of whole segments such as `OWNER/META_ID/`, in
   * unspecified order.
   */
  list(prefix: string): AsyncIterable<ListedObject>;
  /** Deletes an object. Succeeds if there is none. */
  delete(object: string): Promise<void>;
  /**
   * Removes leftovers of unfinished writes that are older than the age, and returns how many.
   * Implementations that need no such cleanup omit this method.
   */
  removeRemains?(minAgeMs: number): Promise<number>;
  /** Aborts reads and writes in progress. */
  close(): Promise<void>;
}
