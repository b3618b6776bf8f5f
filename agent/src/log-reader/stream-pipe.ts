import { close, constants, fstatSync, openSync, readSync } from "node:fs";
import { Socket } from "node:net";

export interface StreamPipeEvents {
  /** The chunk is overwritten afterwards. */
  readonly data: (chunk: Buffer) => void;
  /** The last writer has ended, and all that it wrote was given. */
  readonly ended: () => void;
}

// A pipe holds 64 KiB; more than this is someone who writes as fast as it is read.
const DRAIN_MAX_BYTES = 256 * 1024;

/** The reading end of a FIFO, which keeps its content for the next reader when this one ends. */
export class StreamPipe {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: StreamPipeEvents;
  readonly #buffer: Buffer;
  #ended = false;

  /** Throws if there is no such FIFO. All pipes may share one buffer: it is empty again whenever `data` returns. */
  constructor(path: string, buffer: Buffer, events: StreamPipeEvents) {
    // Without O_NONBLOCK it would wait for a writer.
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(this.#fd).isFIFO()) {
      close(this.#fd);
      throw new Error(`${path} is no FIFO`);
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

  /** Reads the present content without waiting for the event loop. It doesn't report whether a writer is left. */
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
    // EAGAIN: empty, with a writer.
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return 0;
    throw error;
  }
}
