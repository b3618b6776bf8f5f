import { CoordinatorError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/** A reaction within seconds is soon enough, and the check costs almost nothing. */
const INTERVAL_MS = 5_000;

/**
 * Ends the process after an I/O error, because LevelDB then refuses every write until it is opened again. A full disk is no
 * reason to end: the store itself continues once there is room. Returns a function that stops the watchdog.
 */
export function watchStore(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly onBroken: (error: CoordinatorError) => void;
}): () => void {
  const { store, clock, onBroken } = options;
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(INTERVAL_MS, () => {
      const health = store.health();
      if (health.status === "read-only" && health.reason === "io-error") {
        onBroken(new CoordinatorError("INTERNAL", `the store must be opened again: ${health.message}`));
      } else later();
    });
  };
  later();
  return () => cancel();
}
