import type { ProgramEnd, StartedProgram } from "./start-program.ts";

export interface WatchedProgram {
  /** Resolves with the program's end, or soon after a kill without effect. Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  /** Aborts when `ended` resolves. */
  readonly over: AbortSignal;
  /** Whether the program was killed because it made no progress. */
  readonly stalled: boolean;
  /** Kills the program unless `disarm` is called within the time. */
  arm(withinMs: number): void;
  disarm(): void;
  kill(): void;
}

const LEFT_BEHIND: ProgramEnd = {
  exitCode: undefined,
  signal: "SIGKILL",
  error: new Error("it is stuck in the kernel and could not be killed"),
};

/**
 * Kills the program when the signal aborts or it makes no progress. A program that is stuck in the kernel, for instance
 * on a dead disk, doesn't end then and is abandoned, which frees its caller's slot.
 */
export function watchProgram(
  child: StartedProgram,
  signal: AbortSignal,
  killPatienceMs: number,
): WatchedProgram {
  const left = Promise.withResolvers<ProgramEnd>();
  const over = new AbortController();
  let [stall, patience]: (NodeJS.Timeout | undefined)[] = [];
  let stalled = false;
  const kill = (): void => {
    child.kill("SIGKILL");
    patience ??= setTimeout(() => left.resolve(LEFT_BEHIND), killPatienceMs);
  };
  const disarm = (): void => clearTimeout(stall);
  signal.addEventListener("abort", kill, { once: true });
  const ended = Promise.race([child.ended, left.promise]).finally(() => {
    disarm();
    clearTimeout(patience);
    signal.removeEventListener("abort", kill);
    over.abort();
  });
  if (signal.aborted) kill();
  return {
    ...{ ended, over: over.signal, disarm, kill },
    get stalled() {
      return stalled;
    },
    arm: (withinMs) => {
      disarm();
      if (over.signal.aborted) return;
      stall = setTimeout(() => {
        stalled = true;
        kill();
      }, withinMs);
    },
  };
}
