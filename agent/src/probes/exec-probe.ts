import { messageOf } from "@forage/common/message-of";
import { failure, type ProbeAnswer, success } from "./probe-answer.ts";
import type { TimeLimit } from "./time-limit.ts";

export interface ExecResult {
  readonly exitCode: number;
  /** Standard output and standard error together, bounded. */
  readonly output: string;
}

/**
 * Runs a command in a container. Rejects if the command could not run, or after it was ended because the signal
 * aborted.
 */
export type ExecInContainer = (command: readonly string[], signal: AbortSignal) => Promise<ExecResult>;

// A cancelled command usually ends within a second. The next probe must not run at the same time.
const END_MS = 10_000;

/**
 * Runs a command probe. Exit code 0 passes. A command that takes too long is ended and has failed; one that could not
 * run counts neither as success nor as failure.
 */
export async function runCommandProbe(
  command: readonly string[],
  exec: ExecInContainer,
  { clock, timeoutMs, signal }: TimeLimit,
): Promise<ProbeAnswer> {
  const cut = new AbortController();
  const stop = () => cut.abort();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) cut.abort();
  let timedOut = false;
  let giveUp = () => {};
  const givenUp = new Promise<void>((resolve) => {
    giveUp = resolve;
  });
  let cancel = clock.schedule(timeoutMs, () => {
    timedOut = true;
    cut.abort();
    cancel = clock.schedule(END_MS, giveUp);
  });
  try {
    const result = await Promise.race([exec(command, cut.signal), givenUp]);
    if (timedOut || result === undefined) return failure(`did not end within ${timeoutMs} ms`);
    const judge = result.exitCode === 0 ? success : failure;
    return judge(`exit code ${result.exitCode}`, result.output);
  } catch (error) {
    if (timedOut) return failure(`did not end within ${timeoutMs} ms`);
    return { outcome: "unknown", message: messageOf(error) };
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
  }
}
