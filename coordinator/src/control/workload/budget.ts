import type { Workload } from "../../model/workload.ts";
import { updateLimits } from "./update-limits.ts";

/** A workload's disruption budget. */
export interface Budget {
  /** The number of ready replicas that must be left at any time. */
  readonly needed: number;
  /** The number of pods that may move from one node to another at the same time. */
  readonly moving: number;
}

/**
 * Returns the disruption budget. It follows from the workload's annotation, which is like Kubernetes' `maxUnavailable` of a
 * PodDisruptionBudget and rounds up; otherwise from the unavailable pods that the update strategy allows. Recreate allows
 * all. If no pod may be unavailable, a replacement is created first. Pure.
 */
export function budgetOf({ settings, strategy, replicas }: Workload): Budget {
  const limits = updateLimits(strategy, replicas);
  const byStrategy = limits.type === "Recreate" ? replicas : limits.unavailable;
  const surge = limits.type === "Recreate" ? 0 : limits.surge;
  const given = settings.disruptionBudget;
  const unavailable = Math.min(replicas, given === undefined ? byStrategy : resolve(given, replicas));
  return { needed: replicas - unavailable, moving: Math.max(1, unavailable, surge) };
}

function resolve(text: string, replicas: number): number {
  return text.endsWith("%") ? Math.ceil((Number(text.slice(0, -1)) * replicas) / 100) : Number(text);
}
