import type { PodMatcher } from "../match/pod-matcher.ts";
import type { DomainCounter } from "./domain-counter.ts";

/** Counts the pods that a matcher matches, by domain. */
export interface MatchCounter {
  readonly matcher: PodMatcher;
  readonly counter: DomainCounter;
  /** Whether terminating pods count: they do for affinity, but not for spread. */
  readonly countsTerminating: boolean;
}

export type RuleCounterKind = "anti-affinity" | "affinity" | "preferred";

/** Counts pods with a rule about other pods, by domain. `matcher` selects the pods that the rule is about. */
export interface RuleCounter {
  readonly kind: RuleCounterKind;
  readonly matcher: PodMatcher;
  readonly counter: DomainCounter;
  readonly weight: number;
  /** The number of bound pods with the rule, including those on nodes without the topology key. */
  holders: number;
}
