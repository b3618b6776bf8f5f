import type { Clock } from "../../src/store/index.ts";

export const realClock: Clock = {
  monotonicMs: () => performance.now(),
  schedule: (delayMs, run) => {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
};
