import type { Readiness } from "../http/server.ts";
import type { FollowedStore, Leader } from "../store/index.ts";

/**
 * The time without a complete read after which the store counts as behind. It is read every second.
 */
export const BEHIND_MS = 5_000;

/** Returns whether a follower is ready, with the reasons if it is not. */
export function followerReadiness(
  store: Pick<FollowedStore, "behindMs" | "health">,
  leader: Leader | undefined,
): Readiness {
  const { behindMs } = store;
  const role = {
    leads: false,
    ...(leader && { leader: leader.name }),
    ...(leader?.sinceMs !== undefined && { since: new Date(leader.sinceMs).toISOString() }),
    behindSeconds: Math.round(behindMs / 100) / 10,
  };
  const health = store.health();
  const broken =
    health.status === "read-only" && health.reason === "io-error" ? [`store: ${health.message}`] : [];
  const behind =
    behindMs > BEHIND_MS
      ? [`the store was not read for ${Math.round(behindMs / 1000)} s: etcd does not answer`]
      : [];
  const reasons = [...broken, ...behind];
  return { ready: reasons.length === 0, reasons, role };
}
