import { close, constants, fstatSync, openSync, readSync } from "node:fs";
import { Socket } from "node:net";

export interface StreamPipeEvents {
  readonly data: (chunk: Buffer) => void;
  /** The last writer has ended, and all that it wrote was given. */
  readonly ended: () => void;
}

const CHUNK_BYTES = 64 * 1024;
// A pipe holds 64 KiB; more than this is someone who writes as fast as it is read.
const CHUNKS_AT_ONCE = 4;

/** The reading end of a FIFO. What is in it stays there for the next reader when this one goes away. */
export class StreamPipe {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #events: StreamPipeEvents;
  #ended = false;

  /** Throws if there is no such FIFO. */
  constructor(path: string, events: StreamPipeEvents) {
    // Without O_NONBLOCK it would wait for a writer.
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(this.#fd).isFIFO()) {
      close(this.#fd);
      throw new Error(`${path} is no FIFO`);
    }
    this.#events = events;
    this.#socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    this.#socket.on("data", (chunk) => events.data(chunk));
    this.#socket.once("end", () => this.#end());
    this.#socket.on("error", () => this.#end());
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Reads what is there now, without waiting for the loop's turn. Whether a writer is still there is not said. */
  drain(): void {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let i = 0; i < CHUNKS_AT_ONCE && !this.#ended; i += 1) {
      const bytes = readNow(this.#fd, buffer);
      if (bytes === 0) return;
      this.#events.data(buffer.subarray(0, bytes));
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
