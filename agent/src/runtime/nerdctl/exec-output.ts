export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

/** A source of output that can be paused when it is faster than its reader. */
export interface OutputSource {
  pause(): void;
  resume(): void;
}

// A pipe holds 64 KiB on top of this.
const HELD_MAX_BYTES = 256 * 1024;

/** Output on its way to one reader, in the order it came. The reader's pace is passed on to the sources. */
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

  /** Ends the output. Pieces in it are still read. */
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

  // There is no reader any more, and the command must still be able to end.
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
