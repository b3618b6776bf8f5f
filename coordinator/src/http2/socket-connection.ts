import type { Duplex } from "node:stream";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { CODE } from "./frames.ts";

export interface SocketConnectionOptions
  extends Pick<
    ConnectionOptions,
    "onRequest" | "monotonicMs" | "maxStreams" | "isPaced" | "isProven" | "smallDataBytes"
  > {
  /** Whether streams stay open however long their client does not read them. Default: false. */
  readonly keepsStalled?: boolean;
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Called when this side closes the connection because of its peer. */
  readonly onFailure: (error: ConnectionError) => void;
  readonly onClose: () => void;
}

/** The time within which the preface and the first settings must arrive. */
const HANDSHAKE_MS = 10_000;
/** The time without received data after which a PING is sent. */
const SILENCE_MS = 20_000;
/** The time within which a PING must be answered. */
const PING_ANSWER_MS = 10_000;
/** The time after which a blocked stream is reset, because its client does not read it. */
const STALLED_MS = 5 * 60_000;
/** The time for the peer to read why its connection is closed. */
const LINGER_MS = 100;

/**
 * One HTTP/2 connection on a TCP or TLS socket. Frames that are queued without a pause are sent in
 * one write. Later ones follow at once if the transport has accepted all bytes of earlier writes,
 * and otherwise wait for it.
 */
export class SocketConnection {
  readonly #socket: Duplex;
  readonly #options: SocketConnectionOptions;
  readonly #connection: Connection;
  readonly #startedMs: number;
  readonly #flush = (): void => this.#write();
  #isScheduled = false;
  /** The number of writes that were not confirmed. */
  #writes = 0;
  #isEnding = false;

  constructor(socket: Duplex, options: SocketConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#startedMs = options.monotonicMs();
    this.#connection = new Connection({
      ...options,
      onOutput: () => this.#flushSoon(),
      onFailure: (error) => this.#fail(error),
    });
    socket.on("data", (bytes: Buffer) => this.#connection.receive(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#connection.close();
      options.onClose();
    });
    socket.resume();
  }

  /** Refuses new streams, and closes the connection once all streams have ended. */
  leave(): void {
    this.#connection.leave();
    this.#endIfIdle();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /**
   * Ends streams and connections that exceed a time limit. Returns the number of streams that were
   * reset because they were blocked.
   */
  check(nowMs: number): number {
    const { hasSettings, pingedMs, receivedMs } = this.#connection;
    if (!hasSettings) {
      if (nowMs - this.#startedMs >= HANDSHAKE_MS)
        this.#connection.fail(
          new ConnectionError(CODE.PROTOCOL_ERROR, "no SETTINGS frame arrived in time", "HANDSHAKE"),
        );
      return 0;
    }
    if (pingedMs !== undefined) {
      if (nowMs - pingedMs >= PING_ANSWER_MS)
        this.#connection.fail(
          new ConnectionError(CODE.NO_ERROR, "a PING was not answered in time", "KEEPALIVE"),
        );
    } else if (nowMs - receivedMs >= SILENCE_MS) this.#connection.ping();
    return this.#options.keepsStalled ? 0 : this.#connection.resetStalled(nowMs - STALLED_MS);
  }

  #flushSoon(): void {
    if (this.#isScheduled || this.#isBlocked) return;
    this.#isScheduled = true;
    queueMicrotask(this.#flush);
  }

  /**
   * Whether the transport holds bytes back. A socket confirms a write only after all microtasks,
   * even if the kernel has accepted its bytes at once; messages of other streams may follow by then.
   */
  get #isBlocked(): boolean {
    return this.#writes > 0 && this.#socket.writableLength > 0;
  }

  #write(): void {
    this.#isScheduled = false;
    if (this.#isBlocked || this.#isEnding || !this.#connection.hasOutput) return;
    this.#writes++;
    const { bytes, callbacks } = this.#connection.takeOutput();
    this.#socket.write(bytes, (error) => {
      this.#writes--;
      if (error) return;
      for (const callBack of callbacks) callBack();
      this.#connection.resume();
      this.#write();
      this.#endIfIdle();
    });
  }

  /**
   * Closes the connection if `leave` was called, the last stream has ended, and its end was sent.
   */
  #endIfIdle(): void {
    const { isLeaving, openStreams, hasOutput } = this.#connection;
    if (!isLeaving || openStreams > 0 || hasOutput || this.#writes > 0 || this.#isEnding) return;
    this.#isEnding = true;
    this.#socket.end();
  }

  #fail(error: ConnectionError): void {
    this.#isEnding = true;
    this.#socket.end(this.#connection.takeOutput().bytes);
    this.#socket.pause();
    const cancel = this.#options.schedule(LINGER_MS, () => this.#socket.destroy());
    this.#socket.once("close", cancel);
    this.#options.onFailure(error);
  }
}
