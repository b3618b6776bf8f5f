export type JournalErrorCode =
  /** The coordinator belongs to another cluster than this host's pods. */
  | "OTHER_CLUSTER"
  /** The coordinator's revision is lower than one it had already sent, so it uses older data. */
  | "REVISION_WENT_BACK"
  /** The argument can't be stored: an invalid uid, a duplicate, or too large. */
  | "INVALID_RECORD"
  /** The disk rejected the write; nothing was changed. */
  | "WRITE_FAILED"
  /** The directory can't be read or created. */
  | "OPEN_FAILED"
  | "CLOSED";

/**
 * An error of the journal. For a conflict, the message names both sides, so that it can be shown to the operator
 * unchanged.
 */
export class JournalError extends Error {
  readonly code: JournalErrorCode;
  /** Whether the same call may succeed later without any change by the operator. */
  readonly retryable: boolean;

  constructor(code: JournalErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "JournalError";
    this.code = code;
    this.retryable = code === "WRITE_FAILED";
  }
}
