import { writeSync } from "node:fs";

/** Writes bytes to the log's file descriptor and returns the number of written bytes. Throws as `writeSync` does. */
export type WriteLog = (bytes: Buffer) => number;

/** The number of times a write to a full pipe is retried, once a millisecond, before its line is dropped. */
const MAX_PIPE_RETRIES = 50;

/**
 * The destination of a daemon's log. pino's own destination retries a failed write for ever, so a process that logs its
 * end on a full disk would neither serve nor exit. This class drops lines that can't be written, and reports their
 * number once writes succeed again.
 */
export class LogDestination {
  readonly #write: WriteLog;
  readonly #nowMs: () => number;
  #dropped = 0;
  /** True after a line was written in part. The next line then starts with a line break. */
  #torn = false;
  #recent: { add(line: string): void } | undefined;

  /** Returns a log on standard output that adds every line to `recent` as well, also lines that can't be written. */
  static keeping(recent: { add(line: string): void }): LogDestination {
    const destination = new LogDestination();
    destination.#recent = recent;
    return destination;
  }

  /** `nowMs` is the wall clock, used for the line that reports dropped lines. */
  constructor(
    write: WriteLog = (bytes) => writeSync(process.stdout.fd, bytes),
    nowMs: () => number = Date.now,
  ) {
    this.#write = write;
    this.#nowMs = nowMs;
  }

  /** Writes one line, which includes its line break. */
  write(line: string): void {
    this.#recent?.add(line);
    const lines = this.#dropped > 0 ? droppedLine(this.#dropped, this.#nowMs()) + line : line;
    if (!this.#writeAll(Buffer.from(this.#torn ? `\n${lines}` : lines))) this.#dropped++;
    else this.#dropped = 0;
  }

  #writeAll(bytes: Buffer): boolean {
    // If the reader has not read the last line, the process doesn't wait for it again.
    let retries = this.#dropped > 0 ? 0 : MAX_PIPE_RETRIES;
    for (let done = 0; done < bytes.length; ) {
      try {
        done += this.#write(bytes.subarray(done));
        this.#torn = done < bytes.length;
      } catch (error) {
        if (!isBusy(error) || retries-- === 0) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
    return true;
  }
}

function droppedLine(lines: number, time: number): string {
  return `${JSON.stringify({ level: 40, time, event: "log-lines-dropped", lines })}\n`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}
