/** NOT_TAR: the stream is no archive of ours, or broke off. REFUSED: it would lead out of where it may write, or beyond a limit. */
export type ArchiveErrorCode = "NOT_TAR" | "REFUSED" | "NOT_FOUND" | "FAILED";

/** Its message is meant for the user who requested the copy. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
  readonly code: ArchiveErrorCode;

  constructor(code: ArchiveErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}
