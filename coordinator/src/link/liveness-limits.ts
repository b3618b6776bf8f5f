/** The times that decide when a node is unreachable. */
export interface LivenessLimits {
  /** The time without heartbeats after which a node is unreachable. */
  readonly unreachableMs: number;
  /**
   * The grace period after a start of the coordinator in which nodes count as Ready. It is extended while nodes return one
   * after another. It is longer than an agent's longest wait between two attempts to connect.
   */
  readonly startGraceMs: number;
  /** The longest interval between heartbeats in a large fleet. Default: no limit. */
  readonly longestHeartbeatMs?: number;
}

/** The number of heartbeat intervals after which a node is unreachable. */
export const HEARTBEATS_OF_SILENCE = 3;

/**
 * Returns the default limits for a heartbeat interval. Three heartbeats may be missed, and an agent has time to restart.
 */
export function defaultLivenessLimits(heartbeatIntervalMs: number): LivenessLimits {
  return {
    unreachableMs: Math.max(7_500, HEARTBEATS_OF_SILENCE * heartbeatIntervalMs),
    startGraceMs: 15_000,
  };
}
