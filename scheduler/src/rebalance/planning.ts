import type { Placer } from "../place/placer.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { TrialMoves } from "./trial-moves.ts";

/** The parts of a rebalance request that the planners use. */
export interface Planning {
  readonly state: FleetState;
  readonly placer: Placer;
  readonly trialMoves: TrialMoves;
  readonly movesMost: number;
  readonly isMovable: (pod: number) => boolean;
}
