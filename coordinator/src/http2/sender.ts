import { ConnectionError } from "./connection-error.ts";
import {
  allocateFrame,
  CODE,
  DEFAULT_WINDOW_BYTES,
  encodeHeaders,
  FRAME,
  FRAME_HEADER_BYTES,
  MAX_FRAME_BYTES,
  MAX_WINDOW_BYTES,
} from "./frames.ts";
import type { Output } from "./output.ts";
import type { ServerStream } from "./server-stream.ts";

export interface SenderOptions {
  readonly output: Output;
  readonly monotonicMs: () => number;
  /** Called for each DATA frame. */
  readonly onData: () => void;
  /** Called when the end of a response was sent. */
  readonly onEnd: (stream: ServerStream) => void;
}

/**
 * Sends the responses of one connection's streams within the peer's flow-control windows (RFC 9113,
 * section 5.2).
 */
export class Sender {
  readonly #options: SenderOptions;
  /**
   * Streams that wait for space in the output or for the connection's window. Like the next set, it is created when it is
   * first used, because most connections never wait.
   */
  #waiting: Set<ServerStream> | undefined;
  /** Streams that are blocked by a window of the peer. */
  #stalled: Set<ServerStream> | undefined;
  #window = DEFAULT_WINDOW_BYTES;
  #initialWindow = DEFAULT_WINDOW_BYTES;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  get initialWindow(): number {
    return this.#initialWindow;
  }

  send(stream: ServerStream): void {
    const { output } = this.#options;
    if (!output.hasRoomForStreams) {
      this.#addWaiting(stream);
      return;
    }
    if (stream.head !== undefined) {
      output.push(encodeHeaders(stream.id, stream.head, false));
      stream.head = undefined;
    }
    if (stream.pending !== undefined && !this.#sendBody(stream)) return;
    this.#waiting?.delete(stream);
    if (stream.ending === undefined) return;
    output.push(encodeHeaders(stream.id, stream.ending, true));
    this.#options.onEnd(stream);
  }

  /** Continues with waiting streams. */
  resume(): void {
    for (const stream of this.#waiting ?? []) {
      if (!this.#options.output.hasRoomForStreams) return;
      this.send(stream);
    }
  }

  /** Adds an increment to the connection's window. Throws ConnectionError. */
  widen(increment: number): void {
    this.#window += increment;
    if (this.#window > MAX_WINDOW_BYTES)
      throw new ConnectionError(CODE.FLOW_CONTROL_ERROR, "the window of the connection is too large");
    this.resume();
  }

  /** Adds an increment to a stream's window. Returns false if the window becomes too large. */
  widenStream(stream: ServerStream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > MAX_WINDOW_BYTES) return false;
    if (stream.pending !== undefined) this.send(stream);
    return true;
  }

  /**
   * Sets the initial window of new streams, and adjusts the windows of open ones by the difference.
   * Throws ConnectionError.
   */
  setInitialWindow(bytes: number, streams: Iterable<ServerStream>): void {
    if (bytes > MAX_WINDOW_BYTES)
      throw new ConnectionError(CODE.FLOW_CONTROL_ERROR, "the initial window is too large");
    const difference = bytes - this.#initialWindow;
    this.#initialWindow = bytes;
    if (difference === 0) return;
    for (const stream of streams)
      if (!this.widenStream(stream, difference))
        throw new ConnectionError(CODE.FLOW_CONTROL_ERROR, "the window of a stream is too large");
  }

  /**
   * Returns the streams that have been blocked by the peer's windows since before the given time.
   */
  stalledSince(beforeMs: number): readonly ServerStream[] {
    return [...(this.#stalled ?? [])].filter(
      ({ stalledMs }) => stalledMs !== undefined && stalledMs <= beforeMs,
    );
  }

  forget(stream: ServerStream): void {
    this.#waiting?.delete(stream);
    this.#stalled?.delete(stream);
  }

  /** Sends as much of the body as possible. Reports whether all of it was sent. */
  #sendBody(stream: ServerStream): boolean {
    const { output, onData } = this.#options;
    while (stream.pending !== undefined) {
      const { bytes, sent, onAccepted } = stream.pending;
      const length = Math.min(MAX_FRAME_BYTES, this.#window, stream.sendWindow, bytes.length - sent);
      if (length <= 0 || !output.hasRoomForStreams) {
        this.#wait(stream, length <= 0);
        return false;
      }
      const frame = allocateFrame(FRAME.DATA, 0, stream.id, length);
      bytes.copy(frame, FRAME_HEADER_BYTES, sent, sent + length);
      const isLast = sent + length === bytes.length;
      this.#window -= length;
      stream.sendWindow -= length;
      stream.pending.sent += length;
      if (isLast) stream.pending = undefined;
      output.push(frame, isLast ? onAccepted : undefined);
      onData();
    }
    if (stream.stalledMs !== undefined) {
      stream.stalledMs = undefined;
      this.#stalled?.delete(stream);
    }
    return true;
  }

  #wait(stream: ServerStream, isStalled: boolean): void {
    // A stream that is blocked by its own window continues when that window grows.
    if (stream.sendWindow > 0) this.#addWaiting(stream);
    else this.#waiting?.delete(stream);
    if (!isStalled) return;
    stream.stalledMs ??= this.#options.monotonicMs();
    this.#stalled ??= new Set();
    this.#stalled.add(stream);
  }

  #addWaiting(stream: ServerStream): void {
    this.#waiting ??= new Set();
    this.#waiting.add(stream);
  }
}
