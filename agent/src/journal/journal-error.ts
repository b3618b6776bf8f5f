export type JournalErrorCode =
  /** The coordinator belongs to another cluster than this host's pods. */
  | "OTHER_CLUSTER"
  /** The coordinator's revision is behind what it had already sent: it runs on older data. */
  | "REVISION_WENT_BACK"
  /** The argument can't be a record: an invalid uid, too large, or a duplicate. */
  | "INVALID_RECORD"
  /** The disk refused; nothing was taken over. */
  | "WRITE_FAILED"
  /** The directory can't be read or made. */
  | "OPEN_FAILED"
  | "CLOSED";

/** The message names both sides of a conflict, so that it can be shown to the operator as it is. */
export class JournalError extends Error {
  readonly code: JournalErrorCode;
  /** Whether the same call may succeed later with nothing changed by the operator. */
  readonly retryable: boolean;

  constructor(code: JournalErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "JournalError";
    this.code = code;
    this.retryable = code === "WRITE_FAILED";
  }
}
