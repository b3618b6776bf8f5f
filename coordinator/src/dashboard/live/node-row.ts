import type { Node } from "@forage/proto/forage/operator/v1/operator";
import { parseQuantity } from "@forage/scheduler";
import type { NodeHealth } from "../../state/entries.ts";
import type { NodeRow } from "./rows.ts";

const ZONE = "topology.kubernetes.io/zone";
const MILLI = 1_000;
const NANO = 1e9;

export function nodeRow(node: Node, usage: NodeHealth["usage"]): NodeRow {
  const { requested, report } = node;
  const allocatable = report?.allocatable ?? {};
  const pair = (resource: string, factor: number) =>
    [amount(requested[resource]) * factor, amount(allocatable[resource]) * factor] as const;
  return {
    name: node.name,
    zone: node.labels[ZONE] ?? "",
    state: node.unreachable ? "Unreachable" : node.ready ? "Ready" : "NotReady",
    message: node.message,
    cordoned: node.unschedulable,
    drain: node.drain?.state ?? "",
    version: node.agentVersion,
    architecture: report?.architecture ?? "",
    pods: node.pods,
    maxPods: amount(allocatable.pods),
    gateway: node.gateway !== undefined,
    cpu: pair("cpu", MILLI),
    memory: pair("memory", 1),
    ...(usage !== undefined && { usage: [usage.cpuMilli, usage.memoryBytes] as const }),
  };
}

/**
 * Parses an amount. Returns 0 for a missing or invalid one, so that the rest of the node is still
 * shown.
 */
function amount(text: string | undefined): number {
  if (text === undefined) return 0;
  try {
    return Number(parseQuantity(text)) / NANO;
  } catch {
    return 0;
  }
}
