import { VirtualClock } from "@forage/common/virtual-clock";

const START_MS = Date.UTC(2030, 0, 1);

/** Returns the shared time of a simulated world. Each process in it has its own clock (`clockOf`). */
export function simTime(): VirtualClock {
  return new VirtualClock({ startMs: START_MS, wholeMs: true });
}
