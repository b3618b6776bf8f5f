import { keepReissued as real } from "../../coordinator/src/reissue.ts";

export * from "../../coordinator/src/reissue.ts";

/** Does not notice that the wall clock was set since the port's certificate was issued. */
export const keepReissued: typeof real = (options) => {
  const { clock } = options;
  return real({
    ...options,
    clock: { nowMs: clock.monotonicMs, monotonicMs: clock.monotonicMs, schedule: clock.schedule },
  });
};
