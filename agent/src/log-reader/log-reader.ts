import { mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { linkOf, type ReaderRequest } from "../logs/stream-places.ts";
import { RunLog } from "./run-log.ts";

export interface LogReaderOptions {
  /** The directory with a link to each log that has to be read. */
  readonly dir: string;
  readonly nowMs: () => number;
  readonly onError: (logFile: string, error: unknown) => void;
}

// Each run uses two descriptors and a log. A host has fewer containers than this.
const RUNS_MAX = 4_096;
// The size of a read. Empty lines expand to 36 times as much in the log.
const READ_BYTES = 16 * 1024;
const LOG_NAME = /^\/.+\/\d+\.log$/;
const LINK_NAME = /^[0-9a-f]{32}$/;

/** Reads the streams of all containers of a host whose streams are separate. All its state is on disk. */
export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #runs = new Map<string, RunLog>();
  readonly #buffer = Buffer.alloc(READ_BYTES);

  constructor(options: LogReaderOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** Continues where an earlier reader stopped. */
  resume(): void {
    const { dir, onError } = this.#options;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(dir)) {
      if (!LINK_NAME.test(name)) continue;
      const link = join(dir, name);
      let logFile = link;
      try {
        logFile = readlinkSync(link);
        this.#follow(logFile);
      } catch (error) {
        // The pod and its pipes were removed.
        onError(logFile, error);
        if (isMissing(error)) rmSync(link, { force: true });
      }
    }
  }

  /**
   * Handles a request.
   * @throws Error with the message for the agent.
   */
  answer({ kind, logFile }: ReaderRequest): void {
    switch (kind) {
      case "follow":
        this.#follow(logFile);
        break;
      case "sync":
        this.#runs.get(logFile)?.drain();
        break;
      case "drop":
        this.#runs.get(logFile)?.drain();
        this.#drop(logFile);
        break;
      default:
        kind satisfies never;
        throw new Error("there is no such request");
    }
  }

  close(): void {
    for (const run of this.#runs.values()) run.close();
    this.#runs.clear();
  }

  #follow(logFile: string): void {
    if (this.#runs.has(logFile)) return;
    if (!LOG_NAME.test(logFile)) throw new Error(`${JSON.stringify(logFile)} is not a log`);
    if (this.#runs.size >= RUNS_MAX) throw new Error(`${RUNS_MAX} logs are read already`);
    const { nowMs } = this.#options;
    const buffer = this.#buffer;
    this.#runs.set(logFile, new RunLog({ logFile, buffer, nowMs, onEnd: () => this.#drop(logFile) }));
  }

  #drop(logFile: string): void {
    this.#runs.get(logFile)?.close();
    this.#runs.delete(logFile);
    rmSync(linkOf(this.#options.dir, logFile), { force: true });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
