import { Readable, Writable } from "node:stream";
import { loadProgram } from "../src/commands/program.ts";
import { run } from "../src/run.ts";
import type { World } from "../src/world.ts";

export interface Result {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The input stream that replaces `stdin`. */
  readonly input?: Readable;
  readonly signal?: AbortSignal;
  /** The clock. Default: the machine's clock. */
  readonly nowMs?: () => number;
  /** Called with each piece written to standard output. */
  readonly onOutput?: (text: string) => void;
  /** Called with each piece written to standard error. */
  readonly onError?: (text: string) => void;
}

/** Runs a command line in this process, with an empty home directory and without a terminal. */
export async function runCommand(argv: readonly string[], options: RunOptions = {}): Promise<Result> {
  const stdout = new Collector(options.onOutput);
  const stderr = new Collector(options.onError);
  const world: World = {
    // Keeps the machine's own configuration out of the test.
    env: { FORAGE_CONFIG: "/dev/null", ...options.env },
    homeDir: "/nonexistent",
    stdin: options.input ?? Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    nowMs: options.nowMs ?? Date.now,
    randomId: () => "random-id",
    random: () => 0.5,
    interrupted: options.signal ?? new AbortController().signal,
  };
  const exitCode = await run(await loadProgram(argv), argv, world);
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

class Collector {
  readonly #chunks: Buffer[] = [];
  readonly stream: Writable;

  constructor(onText?: (text: string) => void) {
    this.stream = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#chunks.push(chunk);
        onText?.(chunk.toString());
        done();
      },
    });
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}
