import { type PodMatcher, type PodTraits, traitsOf } from "../match/pod-matcher.ts";
import type { MatchCounter, RuleCounter } from "./rule-counter.ts";

/** Traits shared by pods that no selector can tell apart. */
export interface Identity extends PodTraits {
  readonly key: string;
  /** Head of the list of bound pods, -1 for none. */
  firstPod: number;
  pods: number;
  /** Counters that count these pods. */
  counters: readonly MatchCounter[];
  /** Rules of other pods that speak of these pods. */
  carriers: readonly RuleCounter[];
  /** Grows when `carriers` changes. */
  version: number;
}

/** Holds every identity that has pods or was requested lately, found by key or by trait. */
export class Identities {
  readonly #byKey = new Map<string, Identity>();
  /** Most traits, such as a pod's own name among its labels, are of one identity: a set for each would cost more than all else. */
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
      carriers: [],
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
