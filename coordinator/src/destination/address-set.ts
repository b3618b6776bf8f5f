import { Update, WeightedAddr } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import type { Endpoint } from "../endpoints/endpoints.ts";
import type { ServiceHints } from "./hints/service-hints.ts";

/** A published address, and the endpoint from which it was built. */
export interface PublishedAddress {
  readonly endpoint: Endpoint;
  readonly hints: ServiceHints | undefined;
  readonly wire: WeightedAddr & { readonly addr: TcpAddress };
}

/**
 * The complete state of a stream of endpoints. It is immutable, so that all streams can share it.
 */
export interface AddressSet {
  /** Whether the service exists. */
  readonly exists: boolean;
  /** Labels common to all addresses. */
  readonly metricLabels: Readonly<Record<string, string>>;
  /** Addresses by `address|port`. */
  readonly addresses: ReadonlyMap<string, PublishedAddress>;
}

/**
 * Returns the messages that change one published state into another. Removals come first and never
 * name an address of the new set, even if another pod now has it. The first message of a stream
 * contains the complete set, because proxies replace their state by it.
 */
export function updatesBetween(from: AddressSet | undefined, to: AddressSet): Update[] {
  if (to.addresses.size === 0) {
    const same = from !== undefined && from.exists === to.exists && from.addresses.size === 0;
    return same ? [] : [{ update: { $case: "noEndpoints", value: { exists: to.exists } } }];
  }
  const before = from?.addresses ?? new Map<string, PublishedAddress>();
  const gone = [...before].filter(([key]) => !to.addresses.has(key)).map(([, { wire }]) => wire.addr);
  const added = [...to.addresses].filter(([key, published]) => !sameAddress(before.get(key), published));
  const updates: Update[] = [];
  if (gone.length > 0) updates.push({ update: { $case: "remove", value: { addrs: gone } } });
  if (added.length > 0) {
    const addrs = added.map(([, { wire }]) => wire);
    updates.push({ update: { $case: "add", value: { addrs, metricLabels: { ...to.metricLabels } } } });
  }
  return updates;
}

export function encodeUpdates(updates: readonly Update[]): readonly Buffer[] {
  return updates.map((update) => Buffer.from(Update.encode(update).finish()));
}

/**
 * Reports whether both sets are equal. Sets of the same origin share address objects, so the
 * comparison is fast.
 */
export function sameSet(a: AddressSet, b: AddressSet): boolean {
  if (a.exists !== b.exists || a.addresses.size !== b.addresses.size) return false;
  for (const [key, published] of a.addresses) if (b.addresses.get(key) !== published) return false;
  return true;
}

function sameAddress(a: PublishedAddress | undefined, b: PublishedAddress): boolean {
  if (a === b) return true;
  if (a === undefined) return false;
  return Buffer.compare(WeightedAddr.encode(a.wire).finish(), WeightedAddr.encode(b.wire).finish()) === 0;
}
