/**
 * The limit of buffered frames of streams. Beyond it, frames wait in their streams, which share
 * messages by reference, while bytes here are copies.
 */
const STREAM_BYTES = 64 * 1024;
/**
 * The limit of buffered answers to PING, SETTINGS and reset frames. A peer that exceeds it does not
 * read.
 */
const CONTROL_BYTES = 256 * 1024;

export interface Outgoing {
  readonly bytes: Buffer;
  /** Functions to call once the transport has accepted the bytes. */
  readonly callbacks: readonly (() => void)[];
}

/** The unsent frames of one connection, in order. */
export class Output {
  readonly #onFirst: () => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  readonly #callbacks: (() => void)[] = [];

  /** Creates the buffer. `onFirst` is called when it becomes non-empty. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  get hasRoomForStreams(): boolean {
    return this.#bytes < STREAM_BYTES;
  }

  get hasRoomForControl(): boolean {
    return this.#bytes < CONTROL_BYTES;
  }

  /** Adds a frame. `onAccepted` is called once the transport has accepted the frame. */
  push(frame: Buffer, onAccepted?: () => void): void {
    const isFirst = this.#bytes === 0;
    this.#chunks.push(frame);
    this.#bytes += frame.length;
    if (onAccepted !== undefined) this.#callbacks.push(onAccepted);
    if (isFirst) this.#onFirst();
  }

  /**
   * Removes and returns all frames as one buffer. The arrays are emptied and not replaced: old arrays would keep alive what
   * they refer to until the next full collection, even after they are no longer used.
   */
  drain(): Outgoing {
    const [first] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks.length = 0;
    this.#bytes = 0;
    return { bytes, callbacks: this.#callbacks.splice(0) };
  }
}
