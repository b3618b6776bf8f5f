import { CoordinatorError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/** Until the process ends, it refuses every write, and agents stay connected to it although another coordinator may lead. */
const INTERVAL_MS = 1_000;

/**
 * Ends the process after an I/O error, because the store then refuses every write until it is opened again: LevelDB failed, or
 * another coordinator leads. A full disk is no reason to end: the store itself continues once there is room. Returns a function
 * that stops the watchdog.
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
