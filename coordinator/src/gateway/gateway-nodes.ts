import type { NodeEntry } from "../state/entries.ts";
import type { GatewayNodeView } from "./conditions.ts";
import type { GatewayReport } from "./gateway-reader.ts";

/** The state of a node as a gateway. */
export interface GatewayNode {
  readonly node: string;
  /** Whether the node is connected. */
  readonly connected: boolean;
  /** Whether the node is connected and its proxy accepts requests. */
  readonly ready: boolean;
  /** The version that the node has applied; 0 if unknown. */
  readonly version: number;
  readonly proxyVersion: string;
  /**
   * Parts that are not applied although their version is: problems by hostname, or by "" for all
   * hostnames.
   */
  readonly problems: ReadonlyMap<string, string>;
  /** The reason why the node is not ready, or else the node's own message. */
  readonly message: string;
}

/** Derives the state of a gateway node from its liveness and its report. */
export function gatewayNode({ name, health }: NodeEntry, report: GatewayReport | undefined): GatewayNode {
  const { version = 0, proxyVersion = "", problems = new Map<string, string>() } = report ?? {};
  const base = { node: name, connected: health.ready, version, proxyVersion, problems };
  if (!health.ready) return { ...base, ready: false, message: health.message || "the node is unreachable" };
  if (report === undefined) return { ...base, ready: false, message: "its proxy has not reported yet" };
  if (report.ready) return { ...base, ready: true, message: report.message };
  return { ...base, ready: false, message: report.message || "its proxy accepts no requests yet" };
}

/** Returns whether the node has applied the hostnames of a route up to the version. */
export function viewOfNode(
  gateway: GatewayNode,
  hostnames: readonly string[],
  needed: number,
): GatewayNodeView {
  const { node, ready, version, problems, message } = gateway;
  if (!ready) return { node, ready, applied: false, message };
  if (version < needed)
    return { node, ready, applied: false, message: message || "the newest routes are not applied yet" };
  const wrong = ["", ...hostnames].flatMap((hostname) => {
    const problem = problems.get(hostname);
    if (problem === undefined) return [];
    return hostname === "" ? problem : `${hostname}: ${problem}`;
  });
  return { node, ready, applied: wrong.length === 0, message: wrong.join("; ") };
}
