import { performance } from "node:perf_hooks";

/** The number of connections that one check visits while the process is busy. Those of a server of 5,000 are all visited within 2 s. */
const BUSY_VISITS = 1_000;
/** The number of checks within which all connections are visited while the process has time to spare: 8 s. */
const CALM_CHECKS = 20;
/** The number of connections that each check visits at least. */
const MIN_VISITS = 100;
/** The share of time in which the event loop was active above which the process counts as busy. */
const BUSY = 0.5;

/**
 * Returns the number of connections with accepted credentials for each check. A visit takes about 10 µs on a large
 * server, because the connection's state is no longer in the processor's cache. Abuse costs processor time, so checks
 * need to be frequent only while the process is busy.
 */
export class SweepPace {
  readonly #utilization: () => number;

  /** `utilization` returns the share of time, since its last call, in which the event loop was active. */
  constructor(utilization: () => number = utilizationSinceLastCall()) {
    this.#utilization = utilization;
  }

  /** Returns the number of connections to visit in a check. */
  visits(connections: number): number {
    if (this.#utilization() > BUSY) return BUSY_VISITS;
    return Math.max(MIN_VISITS, Math.ceil(connections / CALM_CHECKS));
  }
}

function utilizationSinceLastCall(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
