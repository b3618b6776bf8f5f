import type { NodeReport, NodeUsage } from "@forage/proto/forage/agent/v1/agent";

/** What the link tells of the host. */
export interface NodeSource {
  /** Capacity, labels, conditions and so on, as they are now. Quick: measured beforehand. */
  report(): NodeReport;
  usage(): Promise<NodeUsage>;
}
