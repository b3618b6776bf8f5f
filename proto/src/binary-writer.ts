import { BinaryWriter } from "@bufbuild/protobuf/wire";

export type { BinaryWriter };

/** A writer that has written more than this is not kept, because it keeps a buffer of that size. */
const MAX_KEPT_BYTES = 64 * 1024;

/** The size of buffers that short messages share, and of the longest of these messages. */
const SHARED_BYTES = 8 * 1024;
const MAX_SHARING_BYTES = 1024;

/** The state of the library's writer, of whose version this depends. */
interface WriterState {
  readonly buffer: Uint8Array<ArrayBuffer>;
  pos: number;
}

/** Copies short messages to common buffers, because a buffer of its own takes 1.5 µs more for each. */
class SharedBuffers {
  #buffer = new ArrayBuffer(SHARED_BYTES);
  #at = 0;

  copy(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    if (this.#at + length > SHARED_BYTES) {
      this.#buffer = new ArrayBuffer(SHARED_BYTES);
      this.#at = 0;
    }
    const copy = new Uint8Array(this.#buffer, this.#at, length);
    copy.set(bytes.subarray(0, length));
    // The next one begins at a multiple of eight bytes.
    this.#at += (length + 7) & ~7;
    return copy;
  }
}

/**
 * A writer that is used again after `finish()`, with the buffer that has grown to the size of its messages. A new writer
 * allocates 128 bytes and doubles them until the message fits: for most records three or four allocations outside of the
 * heap of V8. A writer whose message fails is not used again.
 */
class KeptWriter extends BinaryWriter {
  /** The writer that is not in use. One is enough, because encoding a message rarely begins another. */
  static #free: KeptWriter | undefined;
  static readonly #shared = new SharedBuffers();

  static take(): KeptWriter {
    const writer = KeptWriter.#free ?? new KeptWriter();
    KeptWriter.#free = undefined;
    return writer;
  }

  override finish(): Uint8Array<ArrayBuffer> {
    const bytes = this.#takeBytes();
    if (bytes.length <= MAX_KEPT_BYTES) KeptWriter.#free = this;
    return bytes;
  }

  #takeBytes(): Uint8Array<ArrayBuffer> {
    const state = this as unknown as WriterState;
    if (state.pos > MAX_SHARING_BYTES) return super.finish();
    const bytes = KeptWriter.#shared.copy(state.buffer, state.pos);
    // Every message ends with all of its parts joined, so no other state is left.
    state.pos = 0;
    return bytes;
  }
}

/**
 * Returns a writer for one message. It must not be used after `finish()`. Generated messages are encoded to it, and a message
 * with other bytes before it can be.
 */
export function keptWriter(): BinaryWriter {
  return KeptWriter.take();
}
