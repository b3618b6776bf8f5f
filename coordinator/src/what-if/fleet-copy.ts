import { Fleet, type Profile } from "@forage/scheduler";
import { FleetView } from "../control/placement/fleet-view.ts";
import { ObjectFaults } from "../faults/object-faults.ts";
import type { ClusterView } from "../state/cluster-view.ts";

export interface FleetCopy {
  /** The nodes and bound pods of the view, for the caller to change. */
  readonly fleet: Fleet;
  readonly view: FleetView;
  /** Follows the view no more. */
  close(): void;
}

/** Makes a scheduler's fleet of its own that follows the view. */
export function openFleetCopy(state: ClusterView, profile: Profile): FleetCopy {
  const fleet = new Fleet({ profile });
  const view = new FleetView({ state, fleet, faults: new ObjectFaults({ loop: "what-if" }) });
  const close = state.subscribe((changes) => {
    for (const change of changes) view.follow(change);
  });
  return { fleet, view, close };
}
