import { zoneOfNode } from "../endpoints/change-keys.ts";
import type { Endpoint } from "../endpoints/endpoints.ts";
import type { NodeEntry } from "../state/entries.ts";
import { isLocalOnly } from "../state/node-labels.ts";

/** The properties of a client's place that decide which endpoints it gets. */
export interface ClientPlace {
  /** "": not known. */
  readonly zone: string;
  /** The client's node, if only this node reaches its pods. Otherwise empty. */
  readonly localNode: string;
}

export function placeOf(node: NodeEntry | undefined): ClientPlace {
  return { zone: zoneOfNode(node), localNode: node !== undefined && isLocalOnly(node) ? node.name : "" };
}

/** Clients with equal keys get the same endpoints. */
export function placeKey({ zone, localNode }: ClientPlace): string {
  return localNode === "" ? zone : `${zone}@${localNode}`;
}

/** Returns the endpoints that a client there can open connections to. Pure. */
export function reachableFrom({ localNode }: ClientPlace, endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.filter(({ localOnly, node }) => !localOnly || node === localNode);
}
