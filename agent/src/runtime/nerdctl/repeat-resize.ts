import type { Clock } from "@forage/common/clock";

/** The times between two signals. Each is short in comparison with a start that takes so long, and few are sent in all. */
const DELAYS_MS = [100, 300, 1_000, 3_000, 10_000];

export interface RepeatedSignal {
  /** Must be called after each change of the terminal's size. */
  resized(): void;
  close(): void;
}

/**
 * Repeats the signal about a new size. nerdctl reads the size of its terminal when the command starts, and only then begins to
 * watch for changes, so it misses a change in between. Without a change, it sets the same size again, which the command
 * doesn't notice.
 */
export function repeatResize(clock: Pick<Clock, "schedule">, signal: () => void): RepeatedSignal {
  let cancel = (): void => undefined;
  const wait = (index: number): void => {
    const delayMs = DELAYS_MS[index];
    if (delayMs === undefined) return;
    cancel = clock.schedule(delayMs, () => {
      signal();
      wait(index + 1);
    });
  };
  return {
    resized: () => {
      cancel();
      wait(0);
    },
    close: () => cancel(),
  };
}
