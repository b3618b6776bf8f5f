import { CoordinatorError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/** Often enough that nobody waits for it, rare enough to cost nothing. */
const intervalMs = 5_000;

/**
 * After an I/O error LevelDB refuses every write until it is opened anew, so the process has to end and be started again.
 * A full disk is waited out: the store itself goes on once there is room. Returns how to stop.
 */
export function watchStore(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly onBroken: (error: CoordinatorError) => void;
}): () => void {
  const { store, clock, onBroken } = options;
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(intervalMs, () => {
      const health = store.health();
      if (health.status === "read-only" && health.reason === "io-error") {
        onBroken(new CoordinatorError("INTERNAL", `the store has to be opened anew: ${health.message}`));
      } else later();
    });
  };
  later();
  return () => cancel();
}
