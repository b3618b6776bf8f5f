import type { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import type { AddressedService, AddressRanges, AddressStep } from "./draft.ts";
import type { AnnouncingNode } from "./node-networks.ts";
import { AddressPlanner } from "./planner.ts";

export interface AddressInput extends AddressRanges {
  readonly services: readonly AddressedService[];
  readonly records: readonly ServiceAddressRecord[];
  /** The nodes that may announce addresses of load balancers. */
  readonly nodes: readonly AnnouncingNode[];
  /** The name of the node for each address of a host. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly nowMs: number;
}

/**
 * Returns the steps that assign addresses to services. A service keeps its addresses, and gets them back if it is created
 * again before their reservation expires. Pure.
 */
export function planAddresses(input: AddressInput): AddressStep[] {
  const planner = new AddressPlanner(input);
  for (const record of input.records) planner.setRecord(keyOf(record), record);
  for (const service of input.services) planner.setService(keyOf(service), service);
  planner.setNodes(input.nodes, input.hosts);
  return planner.plan(input.nowMs).steps;
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
