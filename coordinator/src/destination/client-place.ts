import { zoneOfNode } from "../endpoints/change-keys.ts";
import type { Endpoint } from "../endpoints/endpoints.ts";
import type { NodeEntry } from "../state/entries.ts";
import { isLocalOnly } from "../state/node-labels.ts";

/** Where a client is, as far as it decides what the client is told. */
export interface ClientPlace {
  /** "": not known. */
  readonly zone: string;
  /** Its node, if that is one whose pods nobody else reaches; else "". */
  readonly localNode: string;
}

export function placeOf(node: NodeEntry | undefined): ClientPlace {
  return { zone: zoneOfNode(node), localNode: node !== undefined && isLocalOnly(node) ? node.name : "" };
}

/** Clients whose places have one key are told the same. */
export function placeKey({ zone, localNode }: ClientPlace): string {
  return localNode === "" ? zone : `${zone}@${localNode}`;
}

/** Pure: the endpoints that a client there can open connections to. */
export function reachableFrom({ localNode }: ClientPlace, endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.filter(({ localOnly, node }) => !localOnly || node === localNode);
}
