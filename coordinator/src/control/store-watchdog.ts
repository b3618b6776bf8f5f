import { CoordinatorError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/**
 * The interval of the check. Until a failure is noticed, every write is refused, and agents stay connected although another
 * coordinator may lead.
 */
const INTERVAL_MS = 1_000;

/**
 * Calls `onBroken` when the store refuses every write until it is opened again: after an I/O error, or because another
 * coordinator leads. A full disk doesn't count, because the store continues once there is room. Returns a function that
 * stops the watchdog.
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
      if (health.status === "read-only" && isOver(health.reason)) {
        onBroken(new CoordinatorError("INTERNAL", `the store must be opened again: ${health.message}`));
      } else later();
    });
  };
  later();
  return () => cancel();
}

function isOver(reason: "no-space" | "unavailable" | "io-error" | "lead-lost"): boolean {
  return reason === "io-error" || reason === "lead-lost";
}
