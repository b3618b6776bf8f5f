import type { NodeReport, NodeUsage } from "@forage/proto/forage/agent/v1/agent";

/** The host's properties that the link reports. */
export interface NodeSource {
  /** Returns the current capacity, labels, conditions and so on. Fast, because everything was measured beforehand. */
  report(): NodeReport;
  usage(): Promise<NodeUsage>;
}
