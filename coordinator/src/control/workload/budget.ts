import type { Workload } from "../../model/workload.ts";
import { updateLimits } from "./update-limits.ts";

/** A workload's disruption budget. */
export interface Budget {
  /** Ready replicas that must be left at any time. */
  readonly needed: number;
  /** The number of pods that may be moving from one node to another at the same time. */
  readonly moving: number;
}

/**
 * Pure. By its annotation, which Kubernetes would call `maxUnavailable` of a disruption budget and rounds up; else by what its update
 * strategy allows to be missing. Recreate allows all. Where not one may be missing, another is made first.
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
