import type { VirtualClock } from "@forage/common/virtual-clock";
import { simTime } from "./fleet/sim-time.ts";

/** A simulated time that advances by itself, for tests that only wait. */
export interface PassingTime {
  readonly time: VirtualClock;
  /** Aborted when the time has ended. */
  readonly life: AbortSignal;
  end(): void;
}

/** Starts a time. `after` registers the function that ends it. */
export function passingTime(after: (end: () => void) => void): PassingTime {
  const life = new AbortController();
  const end = (): void => life.abort();
  after(end);
  const time = simTime();
  const pass = (): void => {
    if (life.signal.aborted) return;
    time.next(Number.MAX_SAFE_INTEGER);
    setImmediate(pass);
  };
  setImmediate(pass);
  return { time, life: life.signal, end };
}
