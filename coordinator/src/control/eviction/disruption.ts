/** The number of nodes that the coordinator has seen, and the number of lost ones among them. */
export interface FleetHealth {
  readonly nodes: number;
  readonly lost: number;
}

/** "full": not one node is left. "partial": so many are lost at once that it is rather the coordinator that was cut off. */
export type Disruption = "none" | "partial" | "full";

/** The share of lost nodes that Kubernetes uses for a zone. */
const PARTIAL_SHARE = 0.55;

export function disruptionOf({ nodes, lost }: FleetHealth): Disruption {
  if (nodes > 0 && lost >= nodes) return "full";
  return lost >= 2 && lost > nodes * PARTIAL_SHARE ? "partial" : "none";
}

/** Limits how many nodes a second may have their pods replaced, and how many at once. */
export interface Pace {
  readonly perSecond: number;
  readonly burst: number;
}

/** Above so many nodes the pods of a few are still replaced in a partial disruption, as in Kubernetes. */
const LARGE_FLEET = 50;

/** Pure. A rack of a large fleet at once; the rest one after another, so that the nodes that are left can keep up. */
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

/** Tokens, one for each lost node whose pods are replaced; a bucket for each state of the fleet, so that one doesn't use up another's. */
export class EvictionPace {
  readonly #buckets = new Map<Disruption, Bucket>();

  /** 0: a token was taken. Else in how many milliseconds to ask again; Infinity: not before the fleet's health changes. */
  take(fleet: FleetHealth, monotonicMs: number): number {
    const { perSecond, burst } = paceOf(fleet);
    const disruption = disruptionOf(fleet);
    // Only a mass loss that lasts costs a node its pods.
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
