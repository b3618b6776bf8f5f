import { Fleet, type Profile } from "@forage/scheduler";
import { FleetView } from "../control/placement/fleet-view.ts";
import { ObjectFaults } from "../faults/object-faults.ts";
import type { ClusterView } from "../state/cluster-view.ts";

export interface FleetCopy {
  /** The nodes and bound pods of the view, which the caller may change. */
  readonly fleet: Fleet;
  readonly view: FleetView;
  /** Stops following the view. */
  close(): void;
}

/** Creates a separate scheduler fleet that follows the view. */
export function openFleetCopy(state: ClusterView, profile: Profile): FleetCopy {
  const fleet = new Fleet({ profile });
  const view = new FleetView({ state, fleet, faults: new ObjectFaults({ loop: "what-if" }) });
  const close = state.subscribe((changes) => {
    for (const change of changes) view.follow(change);
  });
  return { fleet, view, close };
}
