/** Stable codes and whether the same call may succeed later without the caller changing anything. */
import { messageOf } from "@forage/common/message-of";

const RETRYABLE = {
  /** The call breaks a rule of the port; the message names it. */
  INVALID_ARGUMENT: false,
  /** The request exceeds a limit. */
  TOO_LARGE: false,
  /** The revision is older than what is kept: read the range again. */
  COMPACTED: false,
  /** The watcher read too slowly and its next batch is gone: read the range again. */
  SLOW: false,
  /** The revision has not happened yet. */
  FUTURE_REVISION: true,
  LEASE_NOT_FOUND: false,
  /** Too many transactions wait for the disk; nothing was done. */
  OVERLOADED: true,
  /** Too little free space; nothing was done. */
  NO_SPACE: true,
  /** The database can't be reached; nothing was done. */
  UNAVAILABLE: true,
  /** The database did not confirm the write in time. It may have been made, or be made later. */
  UNCONFIRMED: true,
  /** A write failed; its outcome is unknown, and the store stays read-only until it is opened again. */
  IO_ERROR: false,
  /** Another coordinator leads. The outcome of a write is unknown, and the store stays read-only until it is opened again. */
  LEAD_LOST: false,
  CLOSED: false,
  /** Another process, or this one, has the store open. */
  LOCKED: true,
  /** The content on disk is not what was written. The message names the record. */
  CORRUPT: false,
  /** The database's version or layout is not supported. */
  UNSUPPORTED: false,
  /** There is no store, and the caller doesn't allow creating one. */
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

  /** Anything else that was thrown while using the disk. */
  static from(error: unknown): StoreError {
    if (error instanceof StoreError) return error;
    const message = messageOf(error);
    return new StoreError("IO_ERROR", message, { cause: error });
  }

  get retryable(): boolean {
    return RETRYABLE[this.code];
  }
}
