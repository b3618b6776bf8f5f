import type { NodeEntry } from "../state/entries.ts";
import type { GatewayNodeView } from "./conditions.ts";
import type { GatewayReport } from "./gateway-reader.ts";

/** The state of a node as a gateway. */
export interface GatewayNode {
  readonly node: string;
  /** Whether the node is connected. */
  readonly heard: boolean;
  /** Whether the node takes requests too. */
  readonly ready: boolean;
  /** The version that the node has applied. 0 if it is unknown. */
  readonly version: number;
  readonly proxyVersion: string;
  /** The faults by hostname, or "" for all: parts that are not applied although the version is. */
  readonly problems: ReadonlyMap<string, string>;
  /** The reason why it is not ready, or the node's message. */
  readonly message: string;
}

/** Derives a gateway node's state from its liveness and its report. Pure. */
export function gatewayNode({ name, health }: NodeEntry, report: GatewayReport | undefined): GatewayNode {
  const { version = 0, proxyVersion = "", problems = new Map<string, string>() } = report ?? {};
  const base = { node: name, heard: health.ready, version, proxyVersion, problems };
  if (!health.ready) return { ...base, ready: false, message: health.message || "the node is unreachable" };
  if (report === undefined) return { ...base, ready: false, message: "its proxy has not reported yet" };
  if (report.ready) return { ...base, ready: true, message: report.message };
  return { ...base, ready: false, message: report.message || "its proxy takes no requests yet" };
}

/** Reports whether the node has applied the hostnames as of the version. Pure. */
export function viewOfNode(
  gateway: GatewayNode,
  hostnames: readonly string[],
  needed: number,
): GatewayNodeView {
  const { node, ready, version, problems, message } = gateway;
  if (!ready) return { node, ready, inForce: false, message };
  if (version < needed)
    return { node, ready, inForce: false, message: message || "the newest routes are not applied yet" };
  const wrong = ["", ...hostnames].flatMap((hostname) => {
    const problem = problems.get(hostname);
    if (problem === undefined) return [];
    return hostname === "" ? problem : `${hostname}: ${problem}`;
  });
  return { node, ready, inForce: wrong.length === 0, message: wrong.join("; ") };
}
