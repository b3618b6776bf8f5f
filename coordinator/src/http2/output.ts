/**
 * Frames of streams beyond this wait in their streams until the transport has taken what is here. A stream waits with a reference
 * to a shared message, and bytes here are a copy.
 */
const STREAM_BYTES = 64 * 1024;
/** Beyond this, a peer that is sent answers to its PING, SETTINGS and reset frames does not read them. */
const CONTROL_BYTES = 256 * 1024;

export interface Outgoing {
  readonly bytes: Buffer;
  /** To call once the transport has the bytes. */
  readonly taken: readonly (() => void)[];
}

/** Holds the unsent frames of one connection in their order. */
export class Output {
  readonly #onFirst: () => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #taken: (() => void)[] = [];

  /** `onFirst` is called when there is something to take after there was nothing. */
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

  /** `taken` is called once the transport has the frame. */
  push(frame: Buffer, taken?: () => void): void {
    const isFirst = this.#bytes === 0;
    this.#chunks.push(frame);
    this.#bytes += frame.length;
    if (taken !== undefined) this.#taken.push(taken);
    if (isFirst) this.#onFirst();
  }

  /** Returns everything in one piece. */
  take(): Outgoing {
    const [first] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.#bytes);
    const taken = this.#taken;
    this.#chunks = [];
    this.#bytes = 0;
    this.#taken = [];
    return { bytes, taken };
  }
}
