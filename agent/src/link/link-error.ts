export type LinkErrorCode =
  /** The agent has no certificate and no join token. */
  | "NO_IDENTITY"
  /** The certificate has expired; a new join token is required. */
  | "CERTIFICATE_EXPIRED"
  /** The certificate begins in the future because a clock is or was wrong. */
  | "CERTIFICATE_NOT_YET_VALID"
  /** The coordinator rejected the join token or the node. */
  | "REFUSED"
  /** The coordinator belongs to another cluster, or uses older data than it had sent before. */
  | "NOT_OURS"
  /** The other side responds, but not like a coordinator. */
  | "PROTOCOL"
  /** The coordinator can't be reached, or the connection broke. */
  | "UNAVAILABLE"
  /** The coordinator's message could not be written to disk. */
  | "DISK";

/**
 * An error of the connection to the coordinator. The message is for the operator and includes what to do, if possible.
 * It never contains a secret.
 */
export class LinkError extends Error {
  readonly code: LinkErrorCode;
  /** Whether the same call may succeed soon without any change by the operator. */
  readonly retryable: boolean;
  /** Whether the leader failed while the called coordinator works. Then a call to another coordinator fails as well. */
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
