/** The size and the SHA-256 digest (lowercase hex) of an archive. */
export interface Digest {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** An archive that is complete, durable and verified. */
export interface StoredObject extends Digest {
  readonly object: string;
  /** Wall clock, milliseconds since the epoch. */
  readonly storedMs: number;
}

/** An object in a listing. The digest costs a request for each object in some engines, so listings leave it out. */
export type ListedObject = Omit<StoredObject, "sha256">;

export interface PutOptions {
  /** The largest accepted archive. */
  readonly maxBytes: number;
  /** Called once, after the last byte and before the object becomes visible. It throws to refuse the archive. */
  readonly verify: (actual: Digest) => void;
  /** The size if it is known beforehand: S3 needs larger parts for very large archives. */
  readonly expectedBytes?: number;
  readonly signal: AbortSignal;
}

export interface ReadOptions {
  readonly offsetBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Holds the archives of workspaces. An object is visible only when it is complete: it is durable, and its size and digest were
 * verified. Names follow `object-name.ts`. Every method throws CoordinatorError.
 */
export interface ContentStore {
  /** Names the store in snapshot URLs (`OBJECT@NAME`). */
  readonly name: string;
  /**
   * Stores an archive of any size in bounded memory, and replaces an object of the same name at once. If it throws, the object is
   * as it was before.
   */
  put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject>;
  /**
   * Reads from an offset to the end. Throws NOT_FOUND, or OUT_OF_RANGE for an offset beyond the end. A read that has begun returns
   * one archive, even if the object is replaced or deleted meanwhile; or it throws.
   */
  read(object: string, options: ReadOptions): AsyncIterable<Uint8Array>;
  /** Returns undefined unless the object exists. */
  stat(object: string): Promise<StoredObject | undefined>;
  /** Lists all objects, or those under a prefix of whole segments such as `OWNER/META_ID/`, in no certain order. */
  list(prefix: string): AsyncIterable<ListedObject>;
  /** Succeeds if there is no such object. */
  delete(object: string): Promise<void>;
  /** Removes what writes that never ended left behind, once it is older than the age, and returns how much. Engines that clean up by themselves leave it out. */
  removeRemains?(minAgeMs: number): Promise<number>;
  /** Ends reads and writes in progress. */
  close(): Promise<void>;
}
