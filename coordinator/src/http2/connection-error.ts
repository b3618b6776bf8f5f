import { CODE } from "./frames.ts";
import { HpackError } from "./hpack/hpack-error.ts";

/** Names the fault of a peer for which its connection is closed. The metric of cut connections has these values. */
export type CloseReason =
  /** The peer broke the protocol. */
  | "PROTOCOL"
  /** More streams were opened and reset at once than a normal client does. */
  | "RESETS"
  | "PINGS"
  | "SETTINGS"
  /** Frames without effect: empty DATA, PRIORITY, unknown types, frames of closed streams. */
  | "EMPTY_FRAMES"
  | "WINDOW_UPDATES"
  /** A header block that is too large, or in too many parts. */
  | "HEADERS"
  /** Answers to the peer's frames have piled up, because it doesn't read. */
  | "UNREAD"
  /** No preface and settings in time. */
  | "HANDSHAKE"
  /** A PING was not answered in time. */
  | "KEEPALIVE"
  /** A fault of this side. */
  | "INTERNAL";

/** Ends the connection with GOAWAY. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: number;
  readonly reason: CloseReason;

  constructor(code: number, message: string, reason: CloseReason = "PROTOCOL", cause?: unknown) {
    super(message, { cause });
    this.code = code;
    this.reason = reason;
  }
}

/** Returns the error of a peer that costs more than it is worth. */
export function abuse(reason: CloseReason, message: string): ConnectionError {
  return new ConnectionError(CODE.ENHANCE_YOUR_CALM, message, reason);
}

/** Returns the error that ends the connection on which something was thrown. A fault of this side ends no other connection. */
export function toConnectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  if (error instanceof HpackError) return new ConnectionError(CODE.COMPRESSION_ERROR, error.message);
  return new ConnectionError(CODE.INTERNAL_ERROR, "an internal error", "INTERNAL", error);
}
