import type { NodeEntry } from "./entries.ts";

/**
 * Reports whether ready pods on the node are endpoints: the node is ready, or its endpoints are kept because most nodes are
 * lost at once.
 */
export function serves(node: NodeEntry | undefined): boolean {
  return node !== undefined && (node.health.ready || node.health.kept === true);
}
