import { Update, WeightedAddr } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import type { Endpoint } from "../endpoints/endpoints.ts";
import type { ServiceHints } from "./hints/service-hints.ts";

/** One published address with the endpoint that it was built from. */
export interface PublishedAddress {
  readonly endpoint: Endpoint;
  readonly hints: ServiceHints | undefined;
  readonly wire: WeightedAddr & { readonly addr: TcpAddress };
}

/** The complete state of a stream of endpoints. It is immutable, so any number of streams can share it. */
export interface AddressSet {
  /** Whether there is such a service. */
  readonly exists: boolean;
  /** Common to all addresses. */
  readonly metricLabels: Readonly<Record<string, string>>;
  /** Keyed by `address|port`. */
  readonly addresses: ReadonlyMap<string, PublishedAddress>;
}

/**
 * Returns the messages that turn one published state into another. Addresses are the key, so a pod that takes over another's
 * address loses nothing. Removals come first and never name an address of the new set. The first message of a stream holds the
 * complete set, because proxies replace their state by it. Pure.
 */
export function updatesBetween(from: AddressSet | undefined, to: AddressSet): Update[] {
  if (to.addresses.size === 0) {
    const same = from !== undefined && from.exists === to.exists && from.addresses.size === 0;
    return same ? [] : [{ update: { $case: "noEndpoints", value: { exists: to.exists } } }];
  }
  const before = from?.addresses ?? new Map<string, PublishedAddress>();
  const gone = [...before].filter(([key]) => !to.addresses.has(key)).map(([, { wire }]) => wire.addr);
  const added = [...to.addresses].filter(([key, told]) => !sameAddress(before.get(key), told));
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

/** Reports whether both sets tell the same; those of one origin share their addresses, which makes this quick. */
export function sameSet(a: AddressSet, b: AddressSet): boolean {
  if (a.exists !== b.exists || a.addresses.size !== b.addresses.size) return false;
  for (const [key, told] of a.addresses) if (b.addresses.get(key) !== told) return false;
  return true;
}

function sameAddress(a: PublishedAddress | undefined, b: PublishedAddress): boolean {
  if (a === b) return true;
  if (a === undefined) return false;
  return Buffer.compare(WeightedAddr.encode(a.wire).finish(), WeightedAddr.encode(b.wire).finish()) === 0;
}
