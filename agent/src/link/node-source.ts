import type { NodeReport, NodeUsage } from "@forage/proto/forage/agent/v1/agent";

/** The host's properties that the link reports. */
export interface NodeSource {
  /** Capacity, labels, conditions and so on, as they are now. Quick: measured beforehand. */
  report(): NodeReport;
  usage(): Promise<NodeUsage>;
}
