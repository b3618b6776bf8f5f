import { writeSync } from "node:fs";

/** Writes bytes to the log's file descriptor; returns how many were written. Throws as `writeSync` does. */
export type WriteLog = (bytes: Buffer) => number;

/** The number of retries of a write to a full pipe, a millisecond apart, before its line is dropped. */
const MAX_PIPE_RETRIES = 50;

/**
 * The destination of a daemon's log. pino's own destination retries a failed write for ever, so a process that logs its end on a
 * full disk neither serves nor exits. This one drops the lines that can't be written, and reports their number once writing works
 * again.
 */
export class LogDestination {
  readonly #write: WriteLog;
  readonly #nowMs: () => number;
  #dropped = 0;
  /** A line was written in part, so the next one starts on a line of its own. */
  #torn = false;
  #recent: { add(line: string): void } | undefined;

  /** Returns the log on standard output, whose lines `recent` takes too, also those that can't be written. */
  static keeping(recent: { add(line: string): void }): LogDestination {
    const destination = new LogDestination();
    destination.#recent = recent;
    return destination;
  }

  /** `nowMs` is the wall clock, for the line about those that were dropped. */
  constructor(
    write: WriteLog = (bytes) => writeSync(process.stdout.fd, bytes),
    nowMs: () => number = Date.now,
  ) {
    this.#write = write;
    this.#nowMs = nowMs;
  }

  /** Takes one line, with its line break. */
  write(line: string): void {
    this.#recent?.add(line);
    const lines = this.#dropped > 0 ? droppedLine(this.#dropped, this.#nowMs()) + line : line;
    if (!this.#writeAll(Buffer.from(this.#torn ? `\n${lines}` : lines))) this.#dropped++;
    else this.#dropped = 0;
  }

  #writeAll(bytes: Buffer): boolean {
    // A reader that has not taken the last line is not waited for again: the process must go on.
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
