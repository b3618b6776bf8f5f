import { type PodMatcher, type PodTraits, traitsOf } from "../match/pod-matcher.ts";
import type { MatchCounter, RuleCounter } from "./rule-counter.ts";

/** The traits of pods that no selector can distinguish. */
export interface Identity extends PodTraits {
  readonly key: string;
  /** The head of the list of bound pods, or -1. */
  firstPod: number;
  pods: number;
  /** The counters that count these pods. */
  counters: readonly MatchCounter[];
  /** Rules of other pods that concern these pods. */
  ruleCounters: readonly RuleCounter[];
  /** A counter that grows when `carriers` changes. */
  version: number;
}

/** All identities that have pods or were requested recently, by key and by trait. */
export class Identities {
  readonly #byKey = new Map<string, Identity>();
  /**
   * Most traits, such as a pod's own name among its labels, have one identity, and a set for each would use more memory
   * than everything else.
   */
  readonly #byTrait = new Map<string, Identity | Set<Identity>>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): Identity | undefined {
    return this.#byKey.get(key);
  }

  add(key: string, traits: PodTraits): Identity {
    const identity: Identity = {
      key,
      ...traits,
      firstPod: -1,
      pods: 0,
      counters: [],
      ruleCounters: [],
      version: 0,
    };
    this.#byKey.set(key, identity);
    for (const trait of traitsOf(identity)) {
      const known = this.#byTrait.get(trait);
      if (known === undefined) this.#byTrait.set(trait, identity);
      else if (known instanceof Set) known.add(identity);
      else if (known !== identity) this.#byTrait.set(trait, new Set([known, identity]));
    }
    return identity;
  }

  /** Returns the identities that the matcher matches. */
  *matching(matcher: PodMatcher): Generator<Identity> {
    for (const identity of this.#among(matcher.trait)) if (matcher.test(identity)) yield identity;
  }

  values(): Iterable<Identity> {
    return this.#byKey.values();
  }

  /** Removes identities without pods. */
  forget(): void {
    for (const identity of this.#byKey.values()) {
      if (identity.pods > 0) continue;
      this.#byKey.delete(identity.key);
      for (const trait of traitsOf(identity)) {
        const known = this.#byTrait.get(trait);
        if (known instanceof Set) known.delete(identity);
        if (known === identity || (known instanceof Set && known.size === 0)) this.#byTrait.delete(trait);
      }
    }
  }

  #among(trait: string | undefined): Iterable<Identity> {
    if (trait === undefined) return this.#byKey.values();
    const known = this.#byTrait.get(trait);
    return known === undefined ? [] : known instanceof Set ? known : [known];
  }
}
