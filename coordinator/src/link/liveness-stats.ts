import type { MassLoss } from "../control/eviction/mass-loss.ts";
import type { Clock } from "../time/clock.ts";
import type { Sessions } from "./sessions.ts";

/** Figures about heartbeats, for metrics. */
export interface LivenessStats {
  /** Returns the number of stalls of the process since it started. */
  readonly holdUps: () => number;
  /** Reports whether endpoints on lost nodes are kept, because most nodes were lost at once. */
  readonly massLoss: () => boolean;
  /** Reports of agents that could not be written at the last try. */
  readonly unwrittenReports: () => number;
}

export function livenessStats(sessions: Sessions, massLoss: MassLoss, clock: Clock): LivenessStats {
  return {
    holdUps: () => sessions.holdUps,
    massLoss: () => massLoss.isActive(clock.monotonicMs()),
    unwrittenReports: () => sessions.unwrittenReports,
  };
}
