import type { Clock } from "@forage/common/clock";

/** The times between two signals. They grow, so that a slow start is covered by few signals. */
const DELAYS_MS = [100, 300, 1_000, 3_000, 10_000];

export interface RepeatedSignal {
  /** Must be called after each change of the terminal's size. */
  resized(): void;
  close(): void;
}

/**
 * Repeats the signal about a new size. nerdctl can miss a change shortly after the start of the command: in at least one of
 * about 200 starts, the command kept the size before. With each signal, nerdctl reads the size again and sets it. If it is
 * the same, the command doesn't notice.
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
