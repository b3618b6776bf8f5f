import type { Clock } from "../../coordinator/src/store/index.ts";

export const clock: Clock = {
  monotonicMs: () => performance.now(),
  schedule: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
