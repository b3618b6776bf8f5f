/**
 * NOT_TAR: the stream is not a supported archive, or is truncated. REFUSED: an entry would be written outside the
 * target, or exceeds a limit.
 */
export type ArchiveErrorCode = "NOT_TAR" | "REFUSED" | "NOT_FOUND" | "FAILED";

/** An error of a copy. Its message is for the user who requested the copy. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
  readonly code: ArchiveErrorCode;

  constructor(code: ArchiveErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}
