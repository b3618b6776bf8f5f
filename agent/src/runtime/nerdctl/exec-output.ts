export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

/** A source of output that can be paused when it is faster than its reader. */
export interface OutputSource {
  pause(): void;
  resume(): void;
}

// A pipe holds another 64 KiB.
const HELD_MAX_BYTES = 256 * 1024;

/** Buffers output for one reader, in order of arrival. Pauses the sources while the reader is slow. */
export class ExecOutput implements AsyncIterable<OutputChunk> {
  #chunks: OutputChunk[] = [];
  #heldBytes = 0;
  #sources: readonly OutputSource[] = [];
  #paused = false;
  #ended = false;
  #abandoned = false;
  #wake: (() => void) | undefined;

  attach(sources: readonly OutputSource[]): void {
    this.#sources = sources;
  }

  push(stream: OutputChunk["stream"], data: Uint8Array): void {
    if (data.length === 0 || this.#abandoned || this.#ended) return;
    this.#chunks.push({ stream, data });
    this.#heldBytes += data.length;
    if (this.#heldBytes > HELD_MAX_BYTES) this.#setPaused(true);
    this.#wake?.();
  }

  /** Ends the output. The reader still receives buffered pieces. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#heldBytes -= chunk.data.length;
          if (this.#heldBytes <= HELD_MAX_BYTES / 2) this.#setPaused(false);
          yield chunk;
          continue;
        }
        if (this.#ended) return;
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      }
    } finally {
      this.#abandon();
    }
  }

  // The reader has stopped, and the command must still be able to write and end.
  #abandon(): void {
    this.#abandoned = true;
    this.#chunks = [];
    this.#heldBytes = 0;
    this.#setPaused(false);
  }

  #setPaused(paused: boolean): void {
    if (this.#paused === paused) return;
    this.#paused = paused;
    for (const source of this.#sources) paused ? source.pause() : source.resume();
  }
}
