import type { Placer } from "../place/placer.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { Rehearsal } from "./rehearsal.ts";

/** What the planners need to know of the request. */
export interface Planning {
  readonly state: FleetState;
  readonly placer: Placer;
  readonly rehearsal: Rehearsal;
  readonly movesMost: number;
  readonly isMovable: (pod: number) => boolean;
}
