import type { Workload } from "../../coordinator/src/model/workload.ts";

/** The limits of a rolling update by the API's definition, computed independently of the tested code. */
export interface RollingLimits {
  readonly maxActive: number;
  readonly minAvailable: number;
}

/** Undefined for Recreate, which has other rules. */
export function rollingLimitsOf({ strategy, replicas }: Workload): RollingLimits | undefined {
  if (strategy?.type === "Recreate") return undefined;
  const surge = share(strategy?.rollingUpdate?.maxSurge, replicas, Math.ceil);
  const unavailable = share(strategy?.rollingUpdate?.maxUnavailable, replicas, Math.floor);
  // If both round to zero, Kubernetes allows one unavailable replica.
  const spare = surge === 0 && unavailable === 0 ? 1 : unavailable;
  return { maxActive: replicas + surge, minAvailable: Math.max(0, replicas - spare) };
}

function share(text: string | undefined, replicas: number, round: (value: number) => number): number {
  const value = text === undefined || text === "" ? "25%" : text;
  const amount = Number.parseInt(value, 10);
  return value.endsWith("%") ? round((replicas * amount) / 100) : amount;
}
