import { zoneOfNode } from "../endpoints/change-keys.ts";
import type { Endpoint } from "../endpoints/endpoints.ts";
import type { NodeEntry } from "../state/entries.ts";
import { isLocalOnly } from "../state/node-labels.ts";

/** The properties of a client that decide which endpoints it receives. */
export interface ClientPlace {
  /** The client's zone; "" if unknown. */
  readonly zone: string;
  /** The client's node if its pods can be reached only from that node, else empty. */
  readonly localNode: string;
}

export function placeOf(node: NodeEntry | undefined): ClientPlace {
  return { zone: zoneOfNode(node), localNode: node !== undefined && isLocalOnly(node) ? node.name : "" };
}

/** Returns a key that is equal for clients that receive the same endpoints. */
export function placeKey({ zone, localNode }: ClientPlace): string {
  return localNode === "" ? zone : `${zone}@${localNode}`;
}

/** Returns the endpoints to which such a client can connect. */
export function reachableFrom({ localNode }: ClientPlace, endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.filter(({ localOnly, node }) => !localOnly || node === localNode);
}
