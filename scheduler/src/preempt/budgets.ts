import { type PodMatcher, selectorMatcher } from "../match/pod-matcher.ts";
import type { DisruptionBudget } from "../types.ts";

export interface LiveBudget {
  readonly matcher: PodMatcher;
  readonly allowed: number;
}

export function compileBudget(budget: DisruptionBudget): LiveBudget {
  return {
    matcher: selectorMatcher(budget.selector, [budget.namespace]),
    allowed: budget.disruptionsAllowed,
  };
}
