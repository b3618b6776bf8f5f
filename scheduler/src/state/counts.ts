import type { PodMatcher, PodTraits } from "../match/pod-matcher.ts";
import { traitsOf } from "../match/pod-matcher.ts";
import { DomainCounter, type DomainSet } from "./domain-counter.ts";
import type { Identities, Identity } from "./identities.ts";
import type { NodeFacts } from "./node-facts.ts";
import type { MatchCounter, RuleCounter, RuleCounterKind } from "./rule-counter.ts";

interface CarriedRule {
  readonly kind: RuleCounterKind;
  readonly matcher: PodMatcher;
  readonly topologyKey: string;
  readonly weight: number;
}

/** Calls `visit` for each bound pod of an identity with its node. */
export type VisitPods = (identity: Identity, visit: (node: number, terminating: boolean) => void) => void;

const NONE: readonly never[] = [];

function orNone<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list;
}

interface Matching {
  readonly matcher: PodMatcher;
}

/** Finds the rules that may match a pod, without evaluating all rules. */
class TraitIndex<R extends Matching> {
  readonly #byTrait = new Map<string, Set<R>>();
  readonly #others = new Set<R>();

  add(rule: R): void {
    const { trait } = rule.matcher;
    if (trait === undefined) this.#others.add(rule);
    else if (this.#byTrait.has(trait)) this.#byTrait.get(trait)?.add(rule);
    else this.#byTrait.set(trait, new Set([rule]));
  }

  delete(rule: R): void {
    const { trait } = rule.matcher;
    if (trait === undefined) this.#others.delete(rule);
    else if (this.#byTrait.get(trait)?.delete(rule) && this.#byTrait.get(trait)?.size === 0)
      this.#byTrait.delete(trait);
  }

  matching(pod: PodTraits): R[] {
    const found: R[] = [];
    for (const rule of this.#others) if (rule.matcher.test(pod)) found.push(rule);
    for (const trait of traitsOf(pod)) {
      for (const rule of this.#byTrait.get(trait) ?? []) if (rule.matcher.test(pod)) found.push(rule);
    }
    return found;
  }
}

/** All counters and carriers in use, with the pods that each concerns. */
export class Counts {
  readonly #identities: Identities;
  readonly #visitPods: VisitPods;
  readonly #facts: NodeFacts;
  readonly #counters = new Map<string, MatchCounter>();
  readonly #ruleCounters = new Map<string, RuleCounter>();
  readonly #counterIndex = new TraitIndex<MatchCounter>();
  readonly #ruleCounterIndex = new TraitIndex<RuleCounter>();
  #cells = 0;

  constructor(identities: Identities, facts: NodeFacts, visitPods: VisitPods) {
    this.#identities = identities;
    this.#facts = facts;
    this.#visitPods = visitPods;
  }

  /** The size of counters that can be rebuilt, in words. */
  get cells(): number {
    return this.#cells;
  }

  get ruleCounters(): number {
    return this.#ruleCounters.size;
  }

  /** Returns the counter of the matcher's pods over the set's domains. It is computed on first use. */
  counter(matcher: PodMatcher, set: DomainSet, countsTerminating: boolean): DomainCounter {
    const key = `${countsTerminating ? "t" : "-"}${set.topology.key}\0${set.mask?.key ?? ""}\0${matcher.key}`;
    const known = this.#counters.get(key);
    if (known !== undefined) return known.counter;
    const counter = new DomainCounter(set);
    const entry: MatchCounter = { matcher, counter, countsTerminating };
    this.#counters.set(key, entry);
    this.#cells += counter.counts.length;
    this.#counterIndex.add(entry);
    for (const identity of this.#identities.matching(matcher)) {
      identity.counters = [...identity.counters, entry];
      this.#visitPods(identity, (node, terminating) => {
        if (countsTerminating || !terminating) counter.add(node, 1);
      });
    }
    return counter;
  }

  /** Returns the counter for a rule that a bound pod has. */
  ruleCounter({ kind, matcher, topologyKey, weight }: CarriedRule): RuleCounter {
    const key = `${kind}\0${topologyKey}\0${weight}\0${matcher.key}`;
    const known = this.#ruleCounters.get(key);
    if (known !== undefined) return known;
    const set = this.#facts.domains(this.#facts.topology(topologyKey));
    const ruleCounter: RuleCounter = { kind, matcher, counter: new DomainCounter(set), weight, holders: 0 };
    this.#ruleCounters.set(key, ruleCounter);
    this.#ruleCounterIndex.add(ruleCounter);
    for (const identity of this.#identities.matching(matcher)) {
      identity.ruleCounters = [...identity.ruleCounters, ruleCounter];
      identity.version++;
    }
    return ruleCounter;
  }

  /** Registers a new identity with the counters and rules that concern it. */
  introduce(identity: Identity): void {
    identity.counters = orNone(this.#counterIndex.matching(identity));
    identity.ruleCounters = orNone(this.#ruleCounterIndex.matching(identity));
  }

  /** Drops every counter, and carriers without pods. */
  forget(): void {
    for (const entry of this.#counters.values()) {
      entry.counter.close();
      this.#counterIndex.delete(entry);
    }
    this.#counters.clear();
    this.#cells = 0;
    for (const [key, ruleCounter] of this.#ruleCounters) {
      if (ruleCounter.holders > 0) continue;
      ruleCounter.counter.close();
      this.#ruleCounterIndex.delete(ruleCounter);
      this.#ruleCounters.delete(key);
    }
    const live = new Set(this.#ruleCounters.values());
    for (const identity of this.#identities.values()) {
      identity.counters = NONE;
      const kept = identity.ruleCounters.filter((ruleCounter) => live.has(ruleCounter));
      if (kept.length === identity.ruleCounters.length) continue;
      identity.ruleCounters = orNone(kept);
      identity.version++;
    }
  }
}
