import { messageOf } from "@forage/common/message-of";

export type WorkspaceErrorCode =
  /** The order can't be met as it stands, for example because of a bad URL. */
  | "INVALID"
  /** The initializer failed for a reason that a retry doesn't change, such as denied credentials. */
  | "FAILED"
  /** An archive differs from its digest or can't be unpacked. */
  | "DAMAGED"
  /** A server or the content store doesn't respond. */
  | "UNAVAILABLE"
  /** The node's disk, or the workspace's quota, is full. */
  | "NO_ROOM"
  /** A program of the host failed, was killed or is missing. */
  | "HOST_FAILED"
  | "ABORTED";

const FINAL_CODES: readonly WorkspaceErrorCode[] = ["INVALID", "FAILED", "DAMAGED"];

/** An error of a workspace. Its message is for the workspace's owner and never contains a credential. */
export class WorkspaceError extends Error {
  readonly code: WorkspaceErrorCode;
  /** Whether the same attempt may succeed later. */
  readonly retryable: boolean;

  constructor(code: WorkspaceErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "WorkspaceError";
    this.code = code;
    this.retryable = !FINAL_CODES.includes(code);
  }

  static from(error: unknown): WorkspaceError {
    if (error instanceof WorkspaceError) return error;
    const message = messageOf(error);
    if (error instanceof Error && error.name === "AbortError")
      return new WorkspaceError("ABORTED", message, { cause: error });
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOSPC" || code === "EDQUOT")
      return new WorkspaceError("NO_ROOM", message, { cause: error });
    return new WorkspaceError("HOST_FAILED", message, { cause: error });
  }
}
