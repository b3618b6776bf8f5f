import type { Workload } from "../../coordinator/src/model/workload.ts";

/** The most that a rolling update may do, by the contract; worked out here on its own, not by the code that is tested. */
export interface RollingLimits {
  readonly maxActive: number;
  readonly minAvailable: number;
}

/** Undefined for Recreate, which has other rules. */
export function rollingLimitsOf({ strategy, replicas }: Workload): RollingLimits | undefined {
  if (strategy?.type === "Recreate") return undefined;
  const surge = share(strategy?.rollingUpdate?.maxSurge, replicas, Math.ceil);
  const unavailable = share(strategy?.rollingUpdate?.maxUnavailable, replicas, Math.floor);
  // Where both round to nothing, Kubernetes lets one be unavailable.
  const spare = surge === 0 && unavailable === 0 ? 1 : unavailable;
  return { maxActive: replicas + surge, minAvailable: Math.max(0, replicas - spare) };
}

function share(text: string | undefined, replicas: number, round: (value: number) => number): number {
  const value = text === undefined || text === "" ? "25%" : text;
  const amount = Number.parseInt(value, 10);
  return value.endsWith("%") ? round((replicas * amount) / 100) : amount;
}
