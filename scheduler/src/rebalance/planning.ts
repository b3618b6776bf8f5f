import type { Placer } from "../place/placer.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { Rehearsal } from "./rehearsal.ts";

/** The parts of a rebalance request that the planners use. */
export interface Planning {
  readonly state: FleetState;
  readonly placer: Placer;
  readonly rehearsal: Rehearsal;
  readonly movesMost: number;
  readonly isMovable: (pod: number) => boolean;
}
