import { closeSync, openSync, writeSync } from "node:fs";
import { encodeEntries, LOG_STREAMS, type LogStream } from "../logs/log-entry.ts";
import { streamPipes } from "../logs/stream-places.ts";
import { StreamPipe } from "./stream-pipe.ts";

export interface RunLogOptions {
  readonly logFile: string;
  /** The buffer for reads, which all readers share. */
  readonly buffer: Buffer;
  readonly nowMs: () => number;
  /** Called when both streams have ended, because the container is gone. */
  readonly onEnd: () => void;
}

/** Reads both streams of a container's run and appends their entries to its log at once, without buffering. */
export class RunLog {
  readonly #options: RunLogOptions;
  readonly #fd: number;
  readonly #pipes: readonly StreamPipe[];
  #lost: Record<LogStream, number> = { stdout: 0, stderr: 0 };
  #torn = false;

  /** Opens the pipes and the log. Throws if that fails. */
  constructor(options: RunLogOptions) {
    this.#options = options;
    this.#fd = openSync(options.logFile, "a", 0o600);
    const paths = streamPipes(options.logFile);
    const opened: StreamPipe[] = [];
    try {
      for (const stream of LOG_STREAMS) {
        const data = (chunk: Buffer) => this.#write(stream, chunk);
        opened.push(new StreamPipe(paths[stream], options.buffer, { data, ended: () => this.#pipeEnded() }));
      }
    } catch (error) {
      for (const pipe of opened) pipe.close();
      closeSync(this.#fd);
      throw error;
    }
    this.#pipes = opened;
  }

  /** Writes the current content of the pipes. */
  drain(): void {
    for (const pipe of this.#pipes) pipe.drain();
  }

  close(): void {
    for (const pipe of this.#pipes) pipe.close();
    closeSync(this.#fd);
  }

  #pipeEnded(): void {
    if (this.#pipes.every(({ ended }) => ended)) this.#options.onEnd();
  }

  // A full disk never blocks a container: lost bytes are counted, and reported once there is room.
  #write(stream: LogStream, chunk: Buffer): void {
    const nowMs = this.#options.nowMs();
    const entries = encodeEntries(chunk, stream, nowMs);
    if (!this.#append(Buffer.concat([this.#lossNote(nowMs), entries]))) {
      this.#lost = { ...this.#lost, [stream]: this.#lost[stream] + chunk.length };
      return;
    }
    this.#lost = { stdout: 0, stderr: 0 };
  }

  #lossNote(nowMs: number): Buffer {
    const { stdout, stderr } = this.#lost;
    if (stdout + stderr === 0) return NOTHING;
    const what = `forage: the disk was full, ${stdout} bytes of stdout and ${stderr} of stderr are lost here\n`;
    return encodeEntries(Buffer.from(what), "stderr", nowMs);
  }

  /** Appends entries. Reports whether all were written. */
  #append(entries: Buffer): boolean {
    // Ends the line that an interrupted write has left.
    const bytes = this.#torn ? Buffer.concat([LINE_BREAK, entries]) : entries;
    try {
      for (let at = 0; at < bytes.length; ) {
        at += writeSync(this.#fd, bytes, at);
        this.#torn = at < bytes.length;
      }
      return true;
    } catch {
      return false;
    }
  }
}

const NOTHING = Buffer.alloc(0);
const LINE_BREAK = Buffer.from("\n");
