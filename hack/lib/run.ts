import { spawn } from "node:child_process";
import { SetupError } from "./setup-error.ts";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** The encoding of standard output and standard error. Default: utf8. latin1 preserves bytes. */
  readonly encoding?: "utf8" | "latin1";
  /** Whether a non-zero exit code is returned instead of thrown. */
  readonly allowFailure?: boolean;
  /** Called with each chunk of standard output and standard error, as it comes. */
  readonly onOutput?: (text: string) => void;
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

// A caller that hangs is worse than one that fails. No command here takes longer.
const DEFAULT_TIMEOUT_MS = 120_000;

// More than any parsed output, and small enough that a faulty program can't fill the memory.
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Runs a program without a shell and returns its output. Throws COMMAND_FAILED with the end of its standard error. */
export async function run(
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  const result = await collect(file, args, options);
  if (result.exitCode !== 0 && !options.allowFailure) {
    throw new SetupError(
      "COMMAND_FAILED",
      `${file} ${args.join(" ")}: exit code ${result.exitCode}\n${lastLines(result.stderr || result.stdout)}`,
      "see the output above",
    );
  }
  return result;
}

function collect(file: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const timeout = AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      signal,
      killSignal: "SIGKILL",
      stdio: ["pipe", "pipe", "pipe"],
    });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding(options.encoding ?? "utf8").on("data", (text: string) => {
        options.onOutput?.(text);
        if (output[name].length < MAX_OUTPUT_BYTES) output[name] += text;
      });
    }
    child.on("error", (cause) => reject(failure(file, args, cause, timeout)));
    child.on("close", (code, killedBy) => {
      resolve({ ...output, exitCode: code ?? 128 + (killedBy ? 9 : 0) });
    });
    // A program may end without reading its input.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}

function failure(file: string, args: readonly string[], cause: Error, timeout: AbortSignal): Error {
  if ((cause as NodeJS.ErrnoException).code === "ENOENT") {
    return new SetupError(
      "MISSING_TOOL",
      `${file} is not installed`,
      "run hack/up, which installs what is missing",
      { cause },
    );
  }
  const why = timeout.aborted ? "took too long" : cause.message;
  return new SetupError("COMMAND_FAILED", `${file} ${args.join(" ")}: ${why}`, "try again", { cause });
}

function lastLines(text: string, count = 15): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}
