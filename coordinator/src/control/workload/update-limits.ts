import type { UpdateStrategy } from "@forage/proto/forest/v1/forage";

/** The limits on how far an update may deviate from the desired number of replicas. */
export type UpdateLimits =
  | { readonly type: "Recreate" }
  | {
      readonly type: "RollingUpdate";
      /** The number of pods that may exist beyond the replicas. */
      readonly surge: number;
      /** The number of replicas that may be unavailable. */
      readonly unavailable: number;
    };

/** Kubernetes' default of both limits. */
const DEFAULT_SHARE = "25%";

/**
 * Returns the limits as Kubernetes resolves them: as percentages of the replicas, the surge rounded up, the unavailable
 * pods rounded down. If both are 0, one pod may be unavailable, because otherwise no pod could be replaced.
 */
export function updateLimits(strategy: UpdateStrategy | undefined, replicas: number): UpdateLimits {
  if (strategy?.type === "Recreate") return { type: "Recreate" };
  const { maxSurge = "", maxUnavailable = "" } = strategy?.rollingUpdate ?? {};
  const surge = Math.ceil(shareOf(maxSurge || DEFAULT_SHARE, replicas));
  const unavailable = Math.floor(shareOf(maxUnavailable || DEFAULT_SHARE, replicas));
  return {
    type: "RollingUpdate",
    surge,
    unavailable: surge === 0 && unavailable === 0 ? 1 : Math.min(unavailable, replicas),
  };
}

/** Returns by how much the surge exceeds the default, which quotas don't count. */
export function countedSurge(strategy: UpdateStrategy | undefined, pods: number): number {
  const [own, usual] = [updateLimits(strategy, pods), updateLimits(undefined, pods)];
  if (own.type === "Recreate" || usual.type === "Recreate") return 0;
  // A record of an earlier version may hold an invalid percentage.
  return Number.isNaN(own.surge) ? 0 : Math.max(0, own.surge - usual.surge);
}

/** Returns the number of pods of a canary: at least one, at most all. */
export function canarySize(canary: string, replicas: number): number {
  return Math.min(replicas, Math.max(1, Math.ceil(shareOf(canary, replicas))));
}

/** Returns a number as it is, or a percentage of the replicas. It multiplies first, so that 29 % of 100 is exactly 29. */
function shareOf(text: string, replicas: number): number {
  return text.endsWith("%") ? (Number(text.slice(0, -1)) * replicas) / 100 : Number(text);
}
