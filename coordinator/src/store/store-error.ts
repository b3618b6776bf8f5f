import { messageOf } from "@forage/common/message-of";

const RETRYABLE = {
  /** The call violates a rule of the interface. The message names it. */
  INVALID_ARGUMENT: false,
  /** The request exceeds a limit. */
  TOO_LARGE: false,
  /** The revision was compacted: read the range again. */
  COMPACTED: false,
  /** The watcher was too slow, and its next batch was compacted: read the range again. */
  SLOW: false,
  /** The revision is in the future. */
  FUTURE_REVISION: true,
  LEASE_NOT_FOUND: false,
  /** Too many transactions wait for the disk. The call had no effect. */
  OVERLOADED: true,
  /** There is too little free space. The call had no effect. */
  NO_SPACE: true,
  /** The database is unreachable. The call had no effect. */
  UNAVAILABLE: true,
  /** The database did not confirm the write in time. The write may have been made, or be made later. */
  UNCONFIRMED: true,
  /** A write failed. Its outcome is unknown, and the store is read-only until it is opened again. */
  IO_ERROR: false,
  /** Another coordinator leads. The outcome of a write is unknown, and the store is read-only until it is opened again. */
  LEAD_LOST: false,
  CLOSED: false,
  /** The store is open in another process or in this one. */
  LOCKED: true,
  /** The stored content differs from what was written. The message names the record. */
  CORRUPT: false,
  /** The database's version or layout is not supported. */
  UNSUPPORTED: false,
  /** There is no store, and the caller doesn't permit creating one. */
  MISSING: false,
  /** The place to create or restore a store in is not empty. */
  NOT_EMPTY: false,
} as const;

export type StoreErrorCode = keyof typeof RETRYABLE;

export class StoreError extends Error {
  readonly code: StoreErrorCode;
  /** The oldest revision that can be read. Set with COMPACTED and SLOW. */
  readonly compactRevision: number | undefined;

  constructor(
    code: StoreErrorCode,
    message: string,
    options: { cause?: unknown; compactRevision?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "StoreError";
    this.code = code;
    this.compactRevision = options.compactRevision;
  }

  /** Converts another error, such as one of the file system. */
  static from(error: unknown): StoreError {
    if (error instanceof StoreError) return error;
    const message = messageOf(error);
    return new StoreError("IO_ERROR", message, { cause: error });
  }

  get retryable(): boolean {
    return RETRYABLE[this.code];
  }
}
