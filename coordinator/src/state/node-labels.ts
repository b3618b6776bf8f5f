import type { NodeEntry } from "./entries.ts";

/** A label of nodes that others can't open connections to, such as those behind address translation: "local". */
export const reachabilityLabel = "forage.dev/reachability";

/** Labels that the operator gave come before those that the node says of itself. */
export function labelOf(node: NodeEntry | undefined, label: string): string | undefined {
  return node?.record.labels[label] ?? node?.report?.report?.labels[label];
}

/** Whether the pods of a node can be reached from that node alone. */
export function isLocalOnly(node: NodeEntry | undefined): boolean {
  return labelOf(node, reachabilityLabel) === "local";
}
