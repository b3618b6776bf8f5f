import { CODE, DEFAULT_WINDOW_BYTES } from "./frames.ts";

/** Receives the events of a stream. */
export interface StreamUser {
  /**
   * Receives a part of the request's body. The bytes must be copied to be kept, because they may
   * share memory with the data read from the socket.
   */
  data(bytes: Buffer): void;
  /** The request is complete. */
  end(): void;
  /** The stream has ended for any reason, and can send nothing more. Called once. */
  close(): void;
}

/** The part of a connection that its streams use. */
export interface StreamHost {
  /**
   * Sends as much of the stream as the flow-control windows and the buffer allow. The rest is sent
   * when they allow more.
   */
  send(stream: ServerStream): void;
  reset(stream: ServerStream, code: number): void;
  /** Lets the peer send as many further bytes of the request as were received so far. */
  returnWindow(stream: ServerStream): void;
  /** Makes the windows of the stream and its connection this large, and not smaller than they are. */
  widenWindow(stream: ServerStream, bytes: number): void;
}

/** A part of the response's body that is being sent. */
export interface Pending {
  readonly bytes: Buffer;
  sent: number;
  readonly onAccepted: () => void;
}

/**
 * One request and its response. The connection changes its state, and its user sends the response.
 */
export class ServerStream {
  readonly id: number;
  /** The monotonic time at which the stream was opened. */
  readonly openedMs: number;
  user: StreamUser | undefined;
  /**
   * The number of bytes that the peer's window allows to send; negative after the peer has reduced
   * its window.
   */
  sendWindow: number;
  receiveWindow = DEFAULT_WINDOW_BYTES;
  /** Received bytes of the request by which the connection's window was not extended yet. */
  unreturned = 0;
  /** Received bytes of the request by which the stream's window was not extended yet. */
  owed = 0;
  /**
   * The number of announced bytes of the request that have not arrived; undefined if no length was
   * announced.
   */
  expectedBytes: number | undefined;
  /** Whether the peer has ended its side of the stream. */
  hasRequest = false;
  isClosed = false;
  /** The response's header block until it is sent. */
  head: Buffer | undefined;
  pending: Pending | undefined;
  /** The header block that ends the response after its body. */
  ending: Buffer | undefined;
  /**
   * The time since which a window of the peer has blocked this stream; undefined if it is not
   * blocked.
   */
  stalledMs: number | undefined;
  readonly #host: StreamHost;

  constructor(id: number, host: StreamHost, sendWindow: number, openedMs: number) {
    this.id = id;
    this.#host = host;
    this.sendWindow = sendWindow;
    this.openedMs = openedMs;
  }

  /** Sends the header block that begins the response. */
  respond(block: Buffer): void {
    if (this.isClosed || this.ending !== undefined) return;
    this.head = block;
    this.#host.send(this);
  }

  /**
   * Sends a part of the body. Must not be called again before `onAccepted` was called, which happens
   * once the transport has accepted the bytes, or never if the stream ends first.
   */
  write(bytes: Buffer, onAccepted: () => void): void {
    if (this.isClosed || this.ending !== undefined) return;
    this.pending = { bytes, sent: 0, onAccepted };
    this.#host.send(this);
  }

  /**
   * Ends the response with the trailers. A part of the body is dropped if none of its bytes were
   * sent.
   */
  end(block: Buffer): void {
    if (this.isClosed || this.ending !== undefined) return;
    if (this.pending?.sent === 0) this.pending = undefined;
    this.ending = block;
    this.#host.send(this);
  }

  /**
   * Lets the peer continue its request. Must be called for requests that are read while they
   * arrive, once the received bytes occupy no more memory or may occupy it further.
   */
  returnWindow(): void {
    this.#host.returnWindow(this);
  }

  /** Makes the windows for the request this large. Must be called at most once. */
  widenWindow(bytes: number): void {
    this.#host.widenWindow(this, bytes);
  }

  /** Ends the stream without sending the rest of the response. */
  reset(code: number = CODE.CANCEL): void {
    if (!this.isClosed) this.#host.reset(this, code);
  }
}
