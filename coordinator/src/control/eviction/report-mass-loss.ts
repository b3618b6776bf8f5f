import type { Log } from "@forage/common/log";
import type { EventRecorder } from "../../model/event.ts";
import type { FleetHealth } from "./disruption.ts";

/** Returns a listener that reports the begin and the end of a mass loss in the log and as an event. */
export function reportMassLoss(
  events: EventRecorder,
  log: Log,
): (active: boolean, fleet: FleetHealth) => void {
  return (active, { nodes, lost }) => {
    const of = { namespace: "", kind: "coordinator", name: "coordinator" } as const;
    if (active) {
      log.warn({ event: "mass-loss-began", nodes, lost });
      const message = `${lost} of ${nodes} nodes are unreachable: their endpoints stay as last known and their pods are not replaced; check the coordinator's own network`;
      events.record({ ...of, type: "Warning", reason: "MassLossBegan", message });
    } else {
      log.info({ event: "mass-loss-over", nodes, lost });
      const message = `${lost} of ${nodes} nodes are unreachable: their endpoints are withdrawn and their pods are replaced from now on`;
      events.record({ ...of, type: "Normal", reason: "MassLossOver", message });
    }
  };
}
