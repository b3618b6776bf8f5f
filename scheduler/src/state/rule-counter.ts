import type { PodMatcher } from "../match/pod-matcher.ts";
import type { DomainCounter } from "./domain-counter.ts";

/** Counts, by domain, the pods that a matcher matches. */
export interface MatchCounter {
  readonly matcher: PodMatcher;
  readonly counter: DomainCounter;
  /** Spread leaves out pods that are going away; affinity doesn't. */
  readonly countsTerminating: boolean;
}

export type RuleCounterKind = "anti-affinity" | "affinity" | "preferred";

/** Counts, by domain, the pods with a rule about other pods. `matcher` selects the pods that the rule is about. */
export interface RuleCounter {
  readonly kind: RuleCounterKind;
  readonly matcher: PodMatcher;
  readonly counter: DomainCounter;
  readonly weight: number;
  /** Bound pods that carry it, those on nodes without the topology key too. */
  holders: number;
}
