import { type ChildProcess, spawn } from "node:child_process";
import { VolumeError } from "./volumes.ts";

// Mounting, checking and creating file systems of ordinary size takes less than a second each.
const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 64 * 1024;
const OUTPUT_WAIT_MS = 500;
// A child that waits for an unreachable server can't be killed. With more of them, an operator has to repair the host
// first.
const HANGING_MAX = 32;
/** Administrators' tools are in sbin, which the PATH of a service may lack. */
const ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export interface ChildOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ChildResult {
  /** Undefined if a signal from another process killed the program. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs programs that may access foreign file systems. A system call that hangs would occupy one of the few threads that
 * all of the agent's file access shares. Therefore a child process makes such calls, and a child that hangs is
 * abandoned.
 */
export class ChildRunner {
  #hanging = 0;

  /**
   * Runs a program and resolves with any exit code. Rejects with UNAVAILABLE after the time limit, ABORTED on abort, or
   * HOST_FAILED if the program can't be run, in each case without waiting for the child's end.
   */
  run(file: string, args: readonly string[], options: ChildOptions = {}): Promise<ChildResult> {
    const { timeoutMs = TIMEOUT_MS, signal } = options;
    if (signal?.aborted) return Promise.reject(aborted(file));
    if (this.#hanging >= HANGING_MAX) {
      return Promise.reject(new VolumeError("UNAVAILABLE", `${file}: ${HANGING_MAX} programs hang already`));
    }
    return new Promise((resolve, reject) => {
      const child = spawn(file, args, { env: ENV, stdio: ["ignore", "pipe", "pipe"] });
      const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
      const giveUp = (error: VolumeError) => {
        settled();
        this.#leaveBehind(child);
        reject(error);
      };
      const abort = () => giveUp(aborted(file));
      const late = () =>
        giveUp(new VolumeError("UNAVAILABLE", `${file}: did not end within ${timeoutMs} ms`));
      const timer = setTimeout(late, timeoutMs);
      signal?.addEventListener("abort", abort, { once: true });
      const settled = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      child.once("error", (cause) => {
        settled();
        reject(new VolumeError("HOST_FAILED", `${file}: ${cause.message}`, { cause }));
      });
      const end = (exitCode: number | null) => {
        settled();
        child.stdout.destroy();
        child.stderr.destroy();
        resolve({ exitCode: exitCode ?? undefined, stdout: stdout(), stderr: stderr() });
      };
      child.once("close", end);
      // A daemon that the program started may hold its output open.
      child.once("exit", (exitCode) => setTimeout(() => end(exitCode), OUTPUT_WAIT_MS).unref());
    });
  }

  /** Like `run`, but rejects with HOST_FAILED and the program's own message unless the exit code is 0. Returns the output. */
  async must(file: string, args: readonly string[], options: ChildOptions = {}): Promise<string> {
    const result = await this.run(file, args, options);
    if (result.exitCode === 0) return result.stdout;
    throw new VolumeError("HOST_FAILED", `${file}: ${outputEndOf(result)}`);
  }

  #leaveBehind(child: ChildProcess): void {
    this.#hanging += 1;
    child.once("exit", () => {
      this.#hanging -= 1;
    });
    child.kill("SIGKILL");
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.unref();
  }
}

export function outputEndOf({ exitCode, stdout, stderr }: ChildResult): string {
  const said = (stderr.trim() || stdout.trim()).replaceAll(/\s*\n\s*/g, "; ").slice(0, 500);
  return said || `failed with exit code ${exitCode}`;
}

function aborted(file: string): VolumeError {
  return new VolumeError("ABORTED", `${file}: aborted`);
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const kept: Buffer[] = [];
  let room = OUTPUT_BYTES_MAX;
  stream?.on("data", (chunk: Buffer) => {
    const part = chunk.subarray(0, room);
    if (part.byteLength > 0) kept.push(part);
    room -= part.byteLength;
  });
  return () => Buffer.concat(kept).toString();
}
