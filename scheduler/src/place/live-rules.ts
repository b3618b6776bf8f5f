import { type PodMatcher, type PodTraits, workloadMatcher } from "../match/pod-matcher.ts";
import type { PodClass } from "../pod/pod-class.ts";
import type { NodeQuestion, PodTerm, SpreadRule } from "../pod/pod-rules.ts";
import type { DomainCounter, DomainSet } from "../state/domain-counter.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { NodeMask, NodeScore } from "../state/node-column.ts";
import { NODE_TOPOLOGY, type Topology, topologyValue } from "../state/topology.ts";
import type { Profile } from "../types.ts";

export interface LiveSpread {
  readonly topology: Topology;
  readonly counter: DomainCounter;
  readonly maxSkew: number;
  readonly minDomains: number;
  /** 1 if the pod itself will count, else 0. */
  readonly self: number;
}

/** A weighted sum over matching pods in the node's domain. */
export interface Influence {
  readonly counter: DomainCounter;
  readonly weight: number;
}

/**
 * The rules of a class, bound to the fleet's counters and columns, so that evaluating a node takes a few array reads.
 */
export interface LiveRules {
  readonly podClass: PodClass;
  readonly admitted: NodeMask;
  readonly reluctance: NodeScore;
  readonly preference: NodeScore | undefined;
  readonly hard: readonly LiveSpread[];
  readonly soft: readonly LiveSpread[];
  /** The nodes that have the keys of all soft constraints. */
  readonly softNodes: NodeMask | undefined;
  readonly affinity: readonly DomainCounter[];
  readonly matchesItself: boolean;
  /** Domains with pods from which the class must stay away, or that must stay away from the class. */
  readonly repelling: readonly DomainCounter[];
  readonly influences: readonly Influence[];
  /** Replicas of the same workload by zone and by node, for the `pack` profile. */
  readonly siblings: { readonly zones: DomainCounter; readonly nodes: DomainCounter } | undefined;
  readonly identityVersion: number;
  readonly generation: number;
}

const ZONE = "zone";

/** Binds the class's rules to the fleet. Must be repeated when `isStale` returns true. */
export function compileLiveRules(podClass: PodClass, state: FleetState, profile: Profile): LiveRules {
  const { rules, identity } = podClass;
  const mask = (question: NodeQuestion<boolean>) => state.facts.mask(question.key, question.ask);
  const score = (question: NodeQuestion<number>) => state.facts.score(question.key, question.ask);
  const count = (matcher: PodMatcher, topologyKey: string) =>
    state.counts.counter(matcher, everywhere(state, topologyKey), true);
  const { partners } = rules;
  return {
    podClass,
    admitted: mask(rules.admitted),
    reluctance: score(rules.reluctance),
    preference: rules.preference && score(rules.preference),
    hard: rules.hard.map((rule) => tieSpread(rule, identity, state, rule.topologyKey)),
    soft: rules.soft.map((rule) => {
      const spread = tieSpread(rule, identity, state, rule.topologyKey);
      // If the key is the host name, scores count by node, not by the label's value.
      return spread.topology.isHostname ? tieSpread(rule, identity, state, NODE_TOPOLOGY) : spread;
    }),
    softNodes: rules.soft.length > 0 ? mask(hasKeys(rules.soft)) : undefined,
    affinity: partners === undefined ? [] : rules.affinity.map((term) => count(partners, term.topologyKey)),
    matchesItself: partners?.test(identity) ?? false,
    repelling: [
      ...rules.antiAffinity.map((term) => count(term.matcher, term.topologyKey)),
      ...identity.ruleCounters.filter((c) => c.kind === "anti-affinity").map((c) => c.counter),
    ],
    influences: [
      ...rules.preferred.map(({ matcher, topologyKey, weight }: PodTerm) => ({
        counter: count(matcher, topologyKey),
        weight,
      })),
      ...identity.ruleCounters.filter((c) => c.kind !== "anti-affinity"),
    ],
    siblings: profile === "pack" && rules.spreadsByDefault ? tieSiblings(identity, state) : undefined,
    identityVersion: identity.version,
    generation: state.generation,
  };
}

export function isStale(live: LiveRules, state: FleetState): boolean {
  return live.generation !== state.generation || live.identityVersion !== live.podClass.identity.version;
}

function tieSiblings({ workload, revision }: PodTraits, state: FleetState): LiveRules["siblings"] {
  if (workload === undefined) return undefined;
  const siblings = workloadMatcher(workload, revision);
  return {
    zones: state.counts.counter(siblings, everywhere(state, ZONE), false),
    nodes: state.counts.counter(siblings, everywhere(state, NODE_TOPOLOGY), false),
  };
}

function everywhere(state: FleetState, topologyKey: string): DomainSet {
  return state.facts.domains(state.facts.topology(topologyKey));
}

function tieSpread(
  rule: SpreadRule,
  identity: PodTraits,
  state: FleetState,
  topologyKey: string,
): LiveSpread {
  const topology = state.facts.topology(topologyKey);
  const counted = rule.counted && state.facts.mask(rule.counted.key, rule.counted.ask);
  const set = state.facts.domains(topology, counted);
  return {
    topology,
    counter: state.counts.counter(rule.matcher, set, false),
    maxSkew: rule.maxSkew,
    minDomains: rule.minDomains,
    self: rule.selects(identity) ? 1 : 0,
  };
}

function hasKeys(rules: readonly SpreadRule[]): NodeQuestion<boolean> {
  const keys = rules.map((rule) => rule.topologyKey);
  return {
    key: `keys${JSON.stringify([...keys].sort())}`,
    ask: (node) => keys.every((key) => topologyValue(node, key) !== undefined),
  };
}
