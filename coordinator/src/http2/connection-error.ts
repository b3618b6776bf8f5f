import { CODE } from "./frames.ts";
import { HpackError } from "./hpack/hpack-error.ts";

/**
 * The reason why a connection was closed because of its peer. The metric of closed connections has
 * these values.
 */
export type CloseReason =
  /** The peer violated the protocol. */
  | "PROTOCOL"
  /** The peer opened and immediately reset more streams than a normal client. */
  | "RESETS"
  | "PINGS"
  | "SETTINGS"
  /**
   * The peer sent frames without effect: empty DATA, PRIORITY, unknown types, frames of closed
   * streams.
   */
  | "EMPTY_FRAMES"
  | "WINDOW_UPDATES"
  /** A header block is too large or has too many parts. */
  | "HEADERS"
  /** Answers to the peer's frames accumulate because it does not read. */
  | "UNREAD"
  /** The preface and settings did not arrive in time. */
  | "HANDSHAKE"
  /** A PING was not answered in time. */
  | "KEEPALIVE"
  /** This side has a fault. */
  | "INTERNAL";

/** An error that ends the connection with GOAWAY. */
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

/** Returns the error for a peer that causes too much work. */
export function abuse(reason: CloseReason, message: string): ConnectionError {
  return new ConnectionError(CODE.ENHANCE_YOUR_CALM, message, reason);
}

/**
 * Converts anything thrown to the error that ends its connection. A fault of this side ends no
 * other connection.
 */
export function toConnectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  if (error instanceof HpackError) return new ConnectionError(CODE.COMPRESSION_ERROR, error.message);
  return new ConnectionError(CODE.INTERNAL_ERROR, "an internal error", "INTERNAL", error);
}
