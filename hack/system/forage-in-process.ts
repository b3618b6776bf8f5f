import { Readable, Writable } from "node:stream";
import { loadProgram } from "../../cli/src/commands/program.ts";
import { run } from "../../cli/src/run.ts";
import type { RunResult } from "../lib/run.ts";

const LIMIT_MS = 180_000;

/**
 * Runs the `forage` command in this process. Tests that poll would otherwise spend most of their processor time on
 * starting programs.
 */
export async function forageInProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = "",
): Promise<RunResult> {
  const [stdout, stderr] = [new Output(), new Output()];
  const exitCode = await run(await loadProgram(args), args, {
    env,
    homeDir: "/nonexistent",
    stdin: Readable.from(input === "" ? [] : [Buffer.from(input)]),
    stdout,
    stderr,
    nowMs: Date.now,
    randomId: () => crypto.randomUUID(),
    random: Math.random,
    interrupted: AbortSignal.timeout(LIMIT_MS),
  });
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** Runs the command and parses its JSON output. Throws if it fails. */
export async function askForage<T>(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<T> {
  const { stdout, stderr, exitCode } = await forageInProcess([...args, "-o", "json"], env);
  if (exitCode !== 0) throw new Error(`forage ${args.join(" ")}: ${stderr}`);
  return JSON.parse(stdout);
}

class Output extends Writable {
  readonly #chunks: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
}
