import { linkSignals } from "@forage/common/link-signals";
import type { ExecTaskResponse } from "@forage/proto/plugins/drivers/proto/driver";
import { type Clock, pause } from "../../clock.ts";
import { type ContainerRuntime, RuntimeError } from "../../runtime/runtime.ts";
import { DriverError } from "../driver-error.ts";
import { signalOf } from "./exit.ts";

export interface ExecInput {
  readonly containerId: string;
  readonly command: readonly string[];
  /** The time limit in milliseconds. 0: no limit. */
  readonly timeoutMs: number;
}

// Checks write a few lines. Commands with more output should use a streaming exec.
const OUTPUT_MAX_BYTES = 4 * 1024 * 1024;

/** Runs a command to its end. Output of a stream beyond the limit is dropped, with a note in stderr. */
export async function execTask(
  runtime: Pick<ContainerRuntime, "exec">,
  clock: Clock,
  { containerId, command, timeoutMs }: ExecInput,
  signal: AbortSignal,
): Promise<ExecTaskResponse> {
  const limit = new AbortController();
  const done = new AbortController();
  if (timeoutMs > 0)
    void pause(clock, timeoutMs, done.signal).then(() => done.signal.aborted || limit.abort());
  const either = linkSignals(signal, limit.signal);
  const exec = runtime.exec(containerId, { command, stdin: false, tty: false }, either.signal);
  exec.exitCode.catch(() => undefined);
  const kept = { stdout: new KeptOutput(), stderr: new KeptOutput() };
  try {
    for await (const { stream, data } of exec.output) kept[stream].add(data);
    const exitCode = await exec.exitCode;
    const notes = [kept.stdout.note("stdout"), kept.stderr.note("stderr")].join("");
    const stderr = Buffer.concat([kept.stderr.bytes, Buffer.from(notes)]);
    return {
      stdout: kept.stdout.bytes,
      stderr,
      result: { exitCode, signal: signalOf(exitCode), oomKilled: false },
    };
  } catch (error) {
    if (!limit.signal.aborted || signal.aborted || !(error instanceof RuntimeError)) throw error;
    throw new DriverError(
      "FAILED_PRECONDITION",
      `the command did not end within ${timeoutMs} ms and was killed: context deadline exceeded`,
    );
  } finally {
    done.abort();
    either.unlink();
  }
}

class KeptOutput {
  readonly #chunks: Uint8Array[] = [];
  #keptBytes = 0;
  #droppedBytes = 0;

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  add(data: Uint8Array): void {
    const kept = data.subarray(0, OUTPUT_MAX_BYTES - this.#keptBytes);
    if (kept.length > 0) this.#chunks.push(kept);
    this.#keptBytes += kept.length;
    this.#droppedBytes += data.length - kept.length;
  }

  note(stream: string): string {
    return this.#droppedBytes === 0
      ? ""
      : `\nforage: ${this.#droppedBytes} bytes of ${stream} were dropped\n`;
  }
}
