/** Sums the increases of counters between two readings. */
export class Increases {
  #before: ReadonlyMap<string, number> | undefined;

  /**
   * Returns the increase since the last reading; NaN for the first reading. A counter that is new
   * or has decreased counts from 0, and a missing counter counts no more.
   */
  update(counters: ReadonlyMap<string, number>): number {
    const before = this.#before;
    this.#before = counters;
    if (before === undefined) return Number.NaN;
    let sum = 0;
    for (const [key, value] of counters) {
      const last = before.get(key) ?? 0;
      sum += value >= last ? value - last : value;
    }
    return sum;
  }
}

/**
 * The number of requests that a gateway's proxy has answered since it started, and how many of them
 * with a status of 500 or more.
 */
export interface TrafficTotals {
  readonly requests: number;
  readonly errors: number;
}

const MS_PER_SECOND = 1_000;
const UNKNOWN = { requests: Number.NaN, errors: Number.NaN };

/** Computes rates from the totals of all gateways. */
export class GatewayTraffic {
  #before: { readonly atMs: number; readonly totals: ReadonlyMap<string, TrafficTotals> } | undefined;

  /**
   * Returns requests and errors per second since the last reading; NaN if no gateway counts. A
   * gateway counts from its second reading on, because the time of earlier requests is unknown.
   * Totals that decrease count from 0: the proxy was restarted.
   */
  update(totals: ReadonlyMap<string, TrafficTotals>, nowMs: number): TrafficTotals {
    const before = this.#before;
    this.#before = { atMs: nowMs, totals };
    if (before === undefined || nowMs <= before.atMs) return UNKNOWN;
    const known = [...totals].filter(([node]) => before.totals.has(node));
    if (known.length === 0) return UNKNOWN;
    const seconds = (nowMs - before.atMs) / MS_PER_SECOND;
    const sums = known.map(([node, now]) => grown(before.totals.get(node), now));
    return {
      requests: sums.reduce((sum, { requests }) => sum + requests, 0) / seconds,
      errors: sums.reduce((sum, { errors }) => sum + errors, 0) / seconds,
    };
  }
}

function grown(before: TrafficTotals | undefined, now: TrafficTotals): TrafficTotals {
  if (before === undefined || now.requests < before.requests) return now;
  return { requests: now.requests - before.requests, errors: Math.max(0, now.errors - before.errors) };
}
