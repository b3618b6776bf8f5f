/** The number of known nodes, and how many of them are lost. */
export interface FleetHealth {
  readonly nodes: number;
  readonly lost: number;
}

/**
 * The extent of lost nodes. "full": all nodes. "partial": so many that the coordinator's own network is the likelier cause.
 */
export type Disruption = "none" | "partial" | "full";

/** The share of lost nodes above which a disruption is partial. Kubernetes' value for a zone. */
const PARTIAL_SHARE = 0.55;

export function disruptionOf({ nodes, lost }: FleetHealth): Disruption {
  if (nodes > 0 && lost >= nodes) return "full";
  return lost >= 2 && lost > nodes * PARTIAL_SHARE ? "partial" : "none";
}

/** Limits on how many lost nodes may have their pods replaced per second and at once. */
export interface Pace {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The number of nodes above which a partial disruption only slows evictions down instead of stopping them, as in
 * Kubernetes.
 */
const LARGE_FLEET = 50;

/**
 * Returns the pace of evictions. It allows a rack of a large fleet at once, and slows down the rest so that the remaining
 * nodes can start the pods. Pure.
 */
export function paceOf(fleet: FleetHealth): Pace {
  switch (disruptionOf(fleet)) {
    case "none":
      return {
        perSecond: Math.max(0.1, fleet.nodes * 0.01),
        burst: Math.max(2, Math.ceil(fleet.nodes * 0.2)),
      };
    case "partial":
      return fleet.nodes > LARGE_FLEET ? { perSecond: 0.01, burst: 1 } : { perSecond: 0, burst: 0 };
    case "full":
      return { perSecond: 0, burst: 0 };
  }
}

interface Bucket {
  tokens: number;
  filledMs: number;
}

/**
 * Token buckets for evictions. Each lost node whose pods are replaced takes one token. Each disruption has a bucket of its
 * own, so that a state of the fleet doesn't use up the tokens of another.
 */
export class EvictionPace {
  readonly #buckets = new Map<Disruption, Bucket>();

  /**
   * Takes a token and returns 0. If there is none, returns the milliseconds until there is one, or Infinity if there is
   * none before the fleet's health changes.
   */
  acquire(fleet: FleetHealth, monotonicMs: number): number {
    const { perSecond, burst } = paceOf(fleet);
    const disruption = disruptionOf(fleet);
    // The buckets of disruptions start empty: pods are replaced only after the disruption has lasted for a while.
    const tokens = disruption === "none" ? burst : 0;
    const before = this.#buckets.get(disruption) ?? { tokens, filledMs: monotonicMs };
    const gained = ((monotonicMs - before.filledMs) / 1000) * perSecond;
    const bucket = { tokens: Math.min(burst, before.tokens + gained), filledMs: monotonicMs };
    this.#buckets.set(disruption, bucket);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return 0;
    }
    return perSecond === 0 ? Number.POSITIVE_INFINITY : Math.ceil(((1 - bucket.tokens) / perSecond) * 1000);
  }
}
