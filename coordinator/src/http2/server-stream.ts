import { CODE, DEFAULT_WINDOW_BYTES } from "./frames.ts";

/** Receives the events of a stream. */
export interface StreamUser {
  /** A part of the request's body. It can share memory with what was read, so it must be copied to be kept. */
  data(bytes: Buffer): void;
  /** The request is complete. */
  end(): void;
  /** The stream has ended, for whatever reason, and sends nothing more. Called once. */
  close(): void;
}

/** The part of a connection that its streams use. */
export interface StreamHost {
  /** Sends as much of the stream as the flow-control windows and the buffer allow, and the rest when they allow more. */
  send(stream: ServerStream): void;
  reset(stream: ServerStream, code: number): void;
}

/** A part of the response's body that is being sent. */
export interface Pending {
  readonly bytes: Buffer;
  sent: number;
  readonly taken: () => void;
}

/** One request and its response. The connection changes its state; its user sends. */
export class ServerStream {
  readonly id: number;
  /** By the monotonic clock. */
  readonly openedMs: number;
  user: StreamUser | undefined;
  /** Bytes that the peer allows to be sent; negative after the peer has made its windows smaller. */
  sendWindow: number;
  receiveWindow = DEFAULT_WINDOW_BYTES;
  /** Bytes of the request that still count against the connection's window. */
  unreturned = 0;
  /** The announced bytes of the request that have not arrived. Undefined: none were announced. */
  expectedBytes: number | undefined;
  /** The peer has ended its half of the stream. */
  hasRequest = false;
  isClosed = false;
  /** The response's header block, until it is sent. */
  head: Buffer | undefined;
  pending: Pending | undefined;
  /** The block that ends the response after the body. */
  ending: Buffer | undefined;
  /** The time since which a window of the peer has kept this stream from sending. */
  stalledMs: number | undefined;
  readonly #host: StreamHost;

  constructor(id: number, host: StreamHost, sendWindow: number, openedMs: number) {
    this.id = id;
    this.#host = host;
    this.sendWindow = sendWindow;
    this.openedMs = openedMs;
  }

  /** Sends the fields that begin the response. */
  respond(block: Buffer): void {
    if (this.isClosed || this.ending !== undefined) return;
    this.head = block;
    this.#host.send(this);
  }

  /**
   * Sends a part of the body. It must not be called again before `taken`, which is called once the transport has the bytes, and
   * never if the stream ends before.
   */
  write(bytes: Buffer, taken: () => void): void {
    if (this.isClosed || this.ending !== undefined) return;
    this.pending = { bytes, sent: 0, taken };
    this.#host.send(this);
  }

  /** Ends the response with these fields. A part of the body is left out if nothing of it was sent. */
  end(block: Buffer): void {
    if (this.isClosed || this.ending !== undefined) return;
    if (this.pending?.sent === 0) this.pending = undefined;
    this.ending = block;
    this.#host.send(this);
  }

  /** Ends the stream without a response, or without the rest of it. */
  reset(code: number = CODE.CANCEL): void {
    if (!this.isClosed) this.#host.reset(this, code);
  }
}
