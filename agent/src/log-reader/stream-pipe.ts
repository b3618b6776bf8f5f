import { close, constants, fstatSync, openSync, readSync } from "node:fs";
import { Socket } from "node:net";

export interface StreamPipeEvents {
  /** Called with data in a chunk that is overwritten afterwards. */
  readonly data: (chunk: Buffer) => void;
  /** Called when the last writer has ended and all its output was passed on. */
  readonly ended: () => void;
}

// A pipe holds 64 KiB. Beyond this limit, the writer writes as fast as it is read.
const DRAIN_MAX_BYTES = 256 * 1024;

/** The reading end of a FIFO. When it closes, the FIFO keeps its content for the next reader. */
export class StreamPipe {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: StreamPipeEvents;
  readonly #buffer: Buffer;
  #ended = false;

  /**
   * Opens the FIFO. Throws if it doesn't exist. All pipes may share one buffer, whose content is not needed after
   * `data` returns.
   */
  constructor(path: string, buffer: Buffer, events: StreamPipeEvents) {
    // Without O_NONBLOCK, open would wait for a writer.
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(this.#fd).isFIFO()) {
      close(this.#fd);
      throw new Error(`${path} is not a FIFO`);
    }
    this.#events = events;
    this.#buffer = buffer;
    const callback = (bytes: number) => {
      events.data(buffer.subarray(0, bytes));
      return true;
    };
    this.#socket = new Socket({
      fd: this.#fd,
      readable: true,
      writable: false,
      onread: { buffer, callback },
    });
    this.#socket.resume();
    this.#socket.once("end", () => this.#end());
    this.#socket.on("error", () => this.#end());
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Reads the current content without waiting for the event loop. Does not report whether a writer is left. */
  drain(): void {
    for (let drained = 0; drained < DRAIN_MAX_BYTES && !this.#ended; ) {
      const bytes = readNow(this.#fd, this.#buffer);
      if (bytes === 0) return;
      this.#events.data(this.#buffer.subarray(0, bytes));
      drained += bytes;
    }
  }

  close(): void {
    this.#ended = true;
    this.#socket.destroy();
  }

  #end(): void {
    if (this.#ended) return;
    this.close();
    this.#events.ended();
  }
}

function readNow(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    // EAGAIN: the pipe is empty and has a writer.
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return 0;
    throw error;
  }
}
