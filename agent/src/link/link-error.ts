export type LinkErrorCode =
  /** The agent has no certificate and no join token. */
  | "NO_IDENTITY"
  /** The certificate ran out; only a fresh join token helps. */
  | "CERTIFICATE_EXPIRED"
  /** The certificate begins in the future: a clock is or was wrong. */
  | "CERTIFICATE_NOT_YET_VALID"
  /** The coordinator refused the join token, or the node. */
  | "REFUSED"
  /** The coordinator belongs to another cluster, or runs on older data than it had sent. */
  | "NOT_OURS"
  /** The other side answers, but not as a coordinator does. */
  | "PROTOCOL"
  /** The coordinator can't be reached, or the connection broke. */
  | "UNAVAILABLE"
  /** The coordinator's message could not be written to disk. */
  | "DISK";

/** The message is for the operator: it says what to do where something can be done. Holds no secret. */
export class LinkError extends Error {
  readonly code: LinkErrorCode;
  /** Whether the same may succeed soon with nothing changed by the operator. */
  readonly retryable: boolean;
  /** The coordinator that was called is well, and the one that leads is not: another one would not help. */
  readonly isOfLeader: boolean;

  constructor(
    code: LinkErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly isOfLeader?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "LinkError";
    this.code = code;
    this.isOfLeader = options.isOfLeader ?? false;
    this.retryable = code === "UNAVAILABLE" || code === "DISK";
  }
}
