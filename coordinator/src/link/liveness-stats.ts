import type { MassLoss } from "../control/eviction/mass-loss.ts";
import type { Clock } from "../time/clock.ts";
import type { Sessions } from "./sessions.ts";

/** Figures about heartbeats, for metrics. */
export interface LivenessStats {
  /** Returns how often the process was blocked since it started. */
  readonly stalls: () => number;
  /** Reports whether endpoints on lost nodes are kept, because most nodes were lost at once. */
  readonly massLoss: () => boolean;
  /** Returns the number of agents' reports that could not be written at the last attempt. */
  readonly unwrittenReports: () => number;
}

export function livenessStats(sessions: Sessions, massLoss: MassLoss, clock: Clock): LivenessStats {
  return {
    stalls: () => sessions.stalls,
    massLoss: () => massLoss.isActive(clock.monotonicMs()),
    unwrittenReports: () => sessions.unwrittenReports,
  };
}
