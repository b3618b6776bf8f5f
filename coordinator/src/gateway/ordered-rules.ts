import { GatewayRule } from "@forage/proto/forage/agent/v1/agent";
import type { Duration } from "@forage/proto/google/protobuf/duration";
import { type PortsOf, type RefProblem, resolveRule } from "./backends.ts";
import { compareRanks, matchesEverything, matchKey, normalMatch, ranksOf } from "./match.ts";
import { compareRoutes, type Route } from "./route.ts";

/** One match of one rule of a route. */
export interface Entry {
  readonly route: Route;
  readonly ruleIndex: number;
  readonly matchIndex: number;
  /** A key that is equal for equal matches. */
  readonly key: string;
  readonly everything: boolean;
  /** The precedence of the entry's match, from `ranksOf`. */
  readonly ranks: readonly number[];
  readonly rule: GatewayRule;
  readonly bytes: number;
}

export interface Shadowed {
  readonly loser: Entry;
  readonly winner: Entry;
}

/** The rules that routes set for a hostname by naming it. */
export interface OwnRules {
  /** The entries in order of precedence. No two have the same match. */
  readonly entries: readonly Entry[];
  /** Rules that are never reached, because an earlier rule has the same match. */
  readonly shadowed: readonly Shadowed[];
}

/** Returns a route's rules, one entry for each match. A route with passed-through TLS has none. */
export function entriesOf(
  route: Route,
  portsOf: PortsOf,
): { readonly entries: readonly Entry[]; readonly problems: readonly RefProblem[] } {
  if (route.tls?.mode === "Passthrough") return { entries: [], problems: [] };
  const resolved = route.rules.map((rule, index) => resolveRule(route, index, rule, portsOf));
  const entries = route.rules.flatMap((rule, ruleIndex) => {
    const { backends = [], filters = [] } = resolved[ruleIndex] ?? {};
    const shared = {
      backends: [...backends],
      filters: [...filters],
      timeoutMs: toMs(rule.timeout),
      route: `${route.namespace}/${route.name}`,
    };
    const matches = rule.matches.length === 0 ? [undefined] : rule.matches;
    return matches.map((given, matchIndex): Entry => {
      const match = normalMatch(given);
      const everything = matchesEverything(match);
      const wire = { match: everything ? undefined : match, ...shared };
      const bytes = GatewayRule.encode(wire).finish().byteLength;
      const ranks = ranksOf(match);
      return { route, ruleIndex, matchIndex, key: matchKey(match), everything, ranks, rule: wire, bytes };
    });
  });
  return { entries, problems: resolved.flatMap(({ problems }) => problems) };
}

/** Returns the rules of one hostname in order of precedence, regardless of their given order. */
export function orderEntries(given: readonly Entry[]): OwnRules {
  const winners = new Map<string, Entry>();
  const shadowed: Shadowed[] = [];
  for (const entry of [...given].sort(compareEntries)) {
    const winner = winners.get(entry.key);
    if (winner === undefined) winners.set(entry.key, entry);
    else shadowed.push({ loser: entry, winner });
  }
  return { entries: [...winners.values()], shadowed };
}

/**
 * The size limit of a host's message. One host may use a whole message, which must not exceed what
 * an agent accepts.
 */
export const MAX_HOST_BYTES = 2 * 1024 * 1024;

/**
 * Returns the rules of a hostname, followed by those of covering hostnames, the nearest first.
 * Omits unreachable rules, and rules beyond the size limit.
 */
export function chainEntries(own: readonly (readonly Entry[])[]): readonly Entry[] {
  const chained = new Map<string, Entry>();
  let bytes = 0;
  for (const entries of own) {
    for (const entry of entries) {
      if (chained.has(entry.key)) continue;
      bytes += entry.bytes;
      if (bytes > MAX_HOST_BYTES) return [...chained.values()];
      chained.set(entry.key, entry);
      if (entry.everything) return [...chained.values()];
    }
  }
  return [...chained.values()];
}

function compareEntries(a: Entry, b: Entry): number {
  return (
    compareRanks(a.ranks, b.ranks) ||
    compareRoutes(a.route, b.route) ||
    a.ruleIndex - b.ruleIndex ||
    a.matchIndex - b.matchIndex
  );
}

function toMs(duration: Duration | undefined): bigint {
  if (duration === undefined) return 0n;
  // The time is rounded up, because 0 would mean no timeout.
  return duration.seconds * 1000n + BigInt(Math.ceil(duration.nanos / 1e6));
}
