import type { NodeEntry } from "../state/entries.ts";
import type { GatewayNodeView } from "./conditions.ts";
import type { GatewayReport } from "./gateway-reader.ts";

/** How a node does as a gateway. */
export interface GatewayNode {
  readonly node: string;
  /** It is connected. */
  readonly heard: boolean;
  /** It takes requests, too. */
  readonly ready: boolean;
  /** What is in force there; 0: nothing that is known. */
  readonly version: number;
  readonly proxyVersion: string;
  /** Why it isn't ready, or what the node says. */
  readonly message: string;
}

/** Pure: from what is heard of a node and what it says. */
export function gatewayNode({ name, health }: NodeEntry, report: GatewayReport | undefined): GatewayNode {
  const { version = 0, proxyVersion = "" } = report ?? {};
  const base = { node: name, heard: health.ready, version, proxyVersion };
  if (!health.ready) return { ...base, ready: false, message: health.message || "can't be heard" };
  if (report === undefined) return { ...base, ready: false, message: "its proxy has not been heard of yet" };
  if (report.ready) return { ...base, ready: true, message: report.message };
  return { ...base, ready: false, message: report.message || "its proxy takes no requests yet" };
}

/** Pure: whether what became as it is with the version is in force on the node. */
export function viewOfNode({ node, ready, version, message }: GatewayNode, needed: number): GatewayNodeView {
  const inForce = version >= needed;
  const late = "the newest routes are not in force yet";
  return { node, ready, inForce, message: message || (inForce ? "" : late) };
}
