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

/** Calls back for each bound pod of an identity with its node. */
export type VisitPods = (identity: Identity, visit: (node: number, terminating: boolean) => void) => void;

const NONE: readonly never[] = [];

function orNone<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list;
}

interface Matching {
  readonly matcher: PodMatcher;
}

/** Finds, for a pod, the rules that may match it, without asking them all. */
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

/** Holds all counters and carriers in use, and which pods each concerns. */
export class Counts {
  readonly #identities: Identities;
  readonly #visitPods: VisitPods;
  readonly #facts: NodeFacts;
  readonly #counters = new Map<string, MatchCounter>();
  readonly #carriers = new Map<string, RuleCounter>();
  readonly #counterIndex = new TraitIndex<MatchCounter>();
  readonly #carrierIndex = new TraitIndex<RuleCounter>();
  #cells = 0;

  constructor(identities: Identities, facts: NodeFacts, visitPods: VisitPods) {
    this.#identities = identities;
    this.#facts = facts;
    this.#visitPods = visitPods;
  }

  /** Words held by counters that can be had again. */
  get cells(): number {
    return this.#cells;
  }

  get carriers(): number {
    return this.#carriers.size;
  }

  /** The counter of the matcher's pods over the set's domains, counted up on first use. */
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

  /** The carrier for a rule that a bound pod has. */
  carrier({ kind, matcher, topologyKey, weight }: CarriedRule): RuleCounter {
    const key = `${kind}\0${topologyKey}\0${weight}\0${matcher.key}`;
    const known = this.#carriers.get(key);
    if (known !== undefined) return known;
    const set = this.#facts.domains(this.#facts.topology(topologyKey));
    const carrier: RuleCounter = { kind, matcher, counter: new DomainCounter(set), weight, holders: 0 };
    this.#carriers.set(key, carrier);
    this.#carrierIndex.add(carrier);
    for (const identity of this.#identities.matching(matcher)) {
      identity.carriers = [...identity.carriers, carrier];
      identity.version++;
    }
    return carrier;
  }

  /** Fills in what concerns a new identity. */
  introduce(identity: Identity): void {
    identity.counters = orNone(this.#counterIndex.matching(identity));
    identity.carriers = orNone(this.#carrierIndex.matching(identity));
  }

  /** Drops every counter, and carriers that no pod carries any more. */
  forget(): void {
    for (const entry of this.#counters.values()) {
      entry.counter.close();
      this.#counterIndex.delete(entry);
    }
    this.#counters.clear();
    this.#cells = 0;
    for (const [key, carrier] of this.#carriers) {
      if (carrier.holders > 0) continue;
      carrier.counter.close();
      this.#carrierIndex.delete(carrier);
      this.#carriers.delete(key);
    }
    const live = new Set(this.#carriers.values());
    for (const identity of this.#identities.values()) {
      identity.counters = NONE;
      const kept = identity.carriers.filter((carrier) => live.has(carrier));
      if (kept.length === identity.carriers.length) continue;
      identity.carriers = orNone(kept);
      identity.version++;
    }
  }
}
