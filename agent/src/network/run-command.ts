import { runProgram } from "../programs/run-program.ts";
import { NetworkError } from "./network.ts";

/**
 * The time limit of a network command. Under load, commands wait for the kernel's single networking lock; a command
 * that takes longer hangs.
 */
const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
/** Administrators' tools are in sbin, which the PATH of a service may lack. */
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

export interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs a program to its end and returns its standard output. Rejects with a NetworkError. */
export type RunCommand = (file: string, args: readonly string[], options?: CommandOptions) => Promise<string>;

/** The error of a program that ran and failed. */
export class CommandFailed extends NetworkError {
  readonly stdout: string;
  readonly stderr: string;

  constructor(file: string, stdout: string, stderr: string) {
    const said = stderr.trim() || stdout.trim() || "failed without a message";
    super("SETUP_FAILED", `${file}: ${said}`, { retryable: true });
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

export const runCommand: RunCommand = async (file, args, options = {}) => {
  const result = await runProgram(file, args, {
    env: { PATH, LC_ALL: "C", ...options.env },
    timeoutMs: TIMEOUT_MS,
    outputBytesMax: OUTPUT_BYTES_MAX,
    ...(options.input === undefined ? {} : { input: options.input }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const [stdout, stderr] = [withoutFinalNewline(result.stdout), withoutFinalNewline(result.stderr)];
  switch (result.killedFor) {
    case "cancelled":
      throw new NetworkError("ABORTED", `${file}: aborted`, { retryable: true });
    case "timeout":
      throw new NetworkError("TIMEOUT", `${file}: did not end within ${TIMEOUT_MS} ms`, { retryable: true });
    case "too-much-output":
      throw new NetworkError("SETUP_FAILED", `${file}: too much output`, { retryable: false });
    case undefined:
      break;
    default:
      result.killedFor satisfies never;
  }
  if (result.exitCode === 0) return stdout;
  if (result.exitCode !== undefined) throw new CommandFailed(file, stdout, stderr);
  const { error, signal } = result;
  throw new NetworkError("SETUP_FAILED", `${file}: ${error?.message ?? `killed by ${signal}`}`, {
    retryable: false,
    cause: error,
  });
};

function withoutFinalNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}
