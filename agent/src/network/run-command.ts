import { execa } from "execa";
import { NetworkError } from "./network.ts";

/**
 * The limit of a network command. Under load commands wait for the kernel's one networking lock; a longer wait means that the
 * command hangs.
 */
const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
/** Administrators' tools are in sbin, which a service's PATH may lack. */
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

export interface CommandOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs a program to its end and gives its standard output. Rejects with a NetworkError. */
export type RunCommand = (file: string, args: readonly string[], options?: CommandOptions) => Promise<string>;

/** The program ran and failed. */
export class CommandFailed extends NetworkError {
  readonly stdout: string;
  readonly stderr: string;

  constructor(file: string, stdout: string, stderr: string) {
    const said = stderr.trim() || stdout.trim() || "failed without a word";
    super("SETUP_FAILED", `${file}: ${said}`, { retryable: true });
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

export const runCommand: RunCommand = async (file, args, options = {}) => {
  const result = await execa(file, args, {
    reject: false,
    extendEnv: false,
    env: { PATH, LC_ALL: "C", ...options.env },
    timeout: TIMEOUT_MS,
    maxBuffer: OUTPUT_BYTES_MAX,
    ...(options.input === undefined ? { stdin: "ignore" } : { input: options.input }),
    ...(options.signal === undefined ? {} : { cancelSignal: options.signal }),
  });
  if (!result.failed) return result.stdout;
  if (result.isCanceled) throw new NetworkError("ABORTED", `${file}: aborted`, { retryable: true });
  if (result.timedOut)
    throw new NetworkError("TIMEOUT", `${file}: no end after ${TIMEOUT_MS} ms`, { retryable: true });
  if (result.exitCode === undefined) {
    throw new NetworkError("SETUP_FAILED", `${file}: ${result.originalMessage ?? result.shortMessage}`, {
      retryable: false,
      cause: result.cause,
    });
  }
  throw new CommandFailed(file, result.stdout, result.stderr);
};
