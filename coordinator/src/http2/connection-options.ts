import type { ConnectionError } from "./connection-error.ts";
import type { RequestHead } from "./request-head.ts";
import type { ServerStream } from "./server-stream.ts";

export interface ConnectionOptions {
  /** Handles a new stream. Must set its `user`. */
  readonly onRequest: (stream: ServerStream, head: RequestHead) => void;
  /** Called when there is output to send. */
  readonly onOutput: () => void;
  /**
   * Called when the connection has failed. The remaining output should be sent before the transport
   * is closed.
   */
  readonly onFailure: (error: ConnectionError) => void;
  readonly monotonicMs: () => number;
  readonly maxStreams: number;
  /**
   * Whether a connection from the peer's address was closed for abuse before, so that limits are
   * lower.
   */
  readonly isPaced?: boolean;
  /** Whether the peer has a certificate of this cluster, so that limits are higher. Default: false. */
  readonly isProven?: boolean;
  /** The size below which parts of a body are counted as abuse. Default: 64. */
  readonly smallDataBytes?: number;
}
