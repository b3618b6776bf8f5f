import { closeSync, constants, openSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { runProgram } from "../programs/run-program.ts";
import {
  hasStreams,
  linkOf,
  putLink,
  type ReaderAnswer,
  type ReaderRequest,
  readerSocket,
  type StreamPipes,
  streamPipes,
  streamsDir,
} from "./stream-places.ts";

/** Reads the separate streams of containers: the program `forage-logs`. */
export interface StreamReader {
  /**
   * Creates the pipes for a log's container and starts reading them. If no reader runs, rejects and leaves nothing
   * behind.
   */
  begin(logFile: string): Promise<StreamPipes>;
  /**
   * Resolves when the output of an ended container is in its log, or if no reader is left that could write it. Never
   * rejects.
   */
  sync(logFile: string): Promise<void>;
  /** Stops reading for a log whose container was removed. Never rejects. */
  end(logFile: string): Promise<void>;
  close(): void;
}

// The first request starts the reader, which takes a quarter of a second on a quiet host.
const ANSWER_TIMEOUT_MS = 5_000;
const ANSWER_MAX_BYTES = 64 * 1024;
const MKFIFO_TIMEOUT_MS = 10_000;
// mkfifo writes at most one line.
const MKFIFO_OUTPUT_BYTES_MAX = 4_096;
const HOLD = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Calls the reader that serves `dir` over its socket there. */
export class SocketStreamReader implements StreamReader {
  readonly #dir: string;
  /**
   * Read ends by log, open but never read. They keep the output that a container wrote before its end until the reader
   * is back.
   */
  readonly #held = new Map<string, readonly number[]>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  async begin(logFile: string): Promise<StreamPipes> {
    const pipes = streamPipes(logFile);
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      await mkdir(streamsDir(logFile), { recursive: true, mode: 0o700 });
      await makeFifos(Object.values(pipes));
      await putLink(this.#dir, logFile);
      await this.#ask({ kind: "follow", logFile });
      this.#hold(logFile);
      return pipes;
    } catch (cause) {
      await rm(linkOf(this.#dir, logFile), { force: true });
      await rm(streamsDir(logFile), { recursive: true, force: true });
      throw cause;
    }
  }

  async sync(logFile: string): Promise<void> {
    if (!(await hasStreams(logFile))) return;
    this.#hold(logFile);
    await this.#ask({ kind: "sync", logFile }).catch(() => undefined);
  }

  async end(logFile: string): Promise<void> {
    if (!(await hasStreams(logFile))) return;
    await this.#ask({ kind: "drop", logFile }).catch(() => undefined);
    // A reader that returns later must not continue with this log.
    await rm(linkOf(this.#dir, logFile), { force: true });
    this.#release(logFile);
  }

  close(): void {
    for (const logFile of [...this.#held.keys()]) this.#release(logFile);
  }

  #hold(logFile: string): void {
    if (this.#held.has(logFile)) return;
    const fds: number[] = [];
    this.#held.set(logFile, fds);
    try {
      for (const path of Object.values(streamPipes(logFile))) fds.push(openSync(path, HOLD));
    } catch {
      // This error is ignored, because it matters only if the reader ends with the container.
    }
  }

  #release(logFile: string): void {
    for (const fd of this.#held.get(logFile) ?? []) closeSync(fd);
    this.#held.delete(logFile);
  }

  async #ask(request: ReaderRequest): Promise<void> {
    const { error } = await ask(readerSocket(this.#dir), request);
    if (error !== undefined) throw new Error(error);
  }
}

async function makeFifos(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { force: true });
  const { exitCode, stderr, error } = await runProgram("mkfifo", ["--mode=600", "--", ...paths], {
    env: { PATH: "/usr/bin:/bin" },
    timeoutMs: MKFIFO_TIMEOUT_MS,
    outputBytesMax: MKFIFO_OUTPUT_BYTES_MAX,
  });
  if (exitCode !== 0) throw new Error(`mkfifo: ${stderr.trim() || "failed"}`, { cause: error });
}

function ask(path: string, request: ReaderRequest): Promise<ReaderAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = "";
    socket.setEncoding("utf8");
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error("forage-logs doesn't answer")));
    socket.on("connect", () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on("data", (part: string) => {
      text += part;
      if (text.length > ANSWER_MAX_BYTES) socket.destroy(new Error("the answer of forage-logs is too long"));
    });
    socket.on("error", (cause) => reject(new Error("forage-logs can't be reached", { cause })));
    socket.on("close", () => {
      try {
        resolve(JSON.parse(text) as ReaderAnswer);
      } catch (cause) {
        reject(new Error("forage-logs gave no answer", { cause }));
      }
    });
  });
}
