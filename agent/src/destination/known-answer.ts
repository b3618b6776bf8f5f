import { DestinationProfile, Update, WeightedAddr } from "@forage/proto/destination";
import { TcpAddress } from "@forage/proto/net";

/** The known state of one look-up. States are immutable, so a reader can keep the one it was sent. */
export interface KnownAnswer<S> {
  /** Returns the state after an encoded message. `isFirst`: the message is the first of its stream, and complete. */
  next(state: S | undefined, message: Buffer, isFirst: boolean): S;
  /** Returns encoded messages that lead a reader from the state it was sent, or from none, to the newer state. */
  between(from: S | undefined, to: S): readonly Buffer[];
}

interface Endpoints {
  /** Addresses by their encoded form. */
  readonly addresses: ReadonlyMap<string, { readonly weighted: WeightedAddr; readonly encoded: string }>;
  readonly metricLabels: Readonly<Record<string, string>>;
  /** Whether the destination exists, if it has no endpoints. */
  readonly exists: boolean;
}

/** The state of a `Get` stream: endpoints, merged from additions and removals. */
export const ENDPOINTS: KnownAnswer<Endpoints> = { next: nextEndpoints, between: updatesBetween };

/** The state of a `GetProfile` stream: each message replaces the last. */
export const PROFILE: KnownAnswer<Buffer> = {
  next: (_state, message) => message,
  between: (from, to) => (from?.equals(to) === true ? [] : [to]),
};

/**
 * Sent if the coordinator is unreachable and no state is known: the proxy then passes connections on to their original
 * destination. Without an answer it would delay them.
 */
export const PASS_ON = Buffer.from(
  DestinationProfile.encode(
    DestinationProfile.fromPartial({
      retryBudget: { retryRatio: 0.2, minRetriesPerSecond: 10, ttl: { seconds: 10n } },
    }),
  ).finish(),
);

function nextEndpoints(state: Endpoints | undefined, message: Buffer, isFirst: boolean): Endpoints {
  const { update } = Update.decode(message);
  const before: Endpoints =
    state === undefined || isFirst ? { addresses: new Map(), metricLabels: {}, exists: true } : state;
  switch (update?.$case) {
    case "add": {
      const addresses = new Map(before.addresses);
      for (const weighted of update.value.addrs) {
        if (weighted.addr === undefined) continue;
        addresses.set(keyOf(weighted.addr), { weighted, encoded: encodedText(weighted) });
      }
      return { addresses, metricLabels: update.value.metricLabels, exists: true };
    }
    case "remove": {
      const addresses = new Map(before.addresses);
      for (const address of update.value.addrs) addresses.delete(keyOf(address));
      return { ...before, addresses };
    }
    case "noEndpoints":
      return { addresses: new Map(), metricLabels: {}, exists: update.value.exists };
    case undefined:
      return before;
    default:
      return update satisfies never;
  }
}

/** Returns the updates between two states. Removals come first, and no address of the newer state is removed. */
function updatesBetween(from: Endpoints | undefined, to: Endpoints): readonly Buffer[] {
  if (to.addresses.size === 0) {
    const same = from !== undefined && from.addresses.size === 0 && from.exists === to.exists;
    return same ? [] : [encoded({ $case: "noEndpoints", value: { exists: to.exists } })];
  }
  const gone = [...(from?.addresses ?? [])].flatMap(([key, { weighted }]) =>
    to.addresses.has(key) || weighted.addr === undefined ? [] : [weighted.addr],
  );
  const added = [...to.addresses]
    .filter(([key, { encoded: now }]) => from?.addresses.get(key)?.encoded !== now)
    .map(([, { weighted }]) => weighted);
  return [
    ...(gone.length === 0 ? [] : [encoded({ $case: "remove", value: { addrs: gone } })]),
    ...(added.length === 0
      ? []
      : [encoded({ $case: "add", value: { addrs: added, metricLabels: { ...to.metricLabels } } })]),
  ];
}

function encoded(update: NonNullable<Update["update"]>): Buffer {
  return Buffer.from(Update.encode({ update }).finish());
}

function keyOf(address: TcpAddress): string {
  return Buffer.from(TcpAddress.encode(address).finish()).toString("latin1");
}

function encodedText(weighted: WeightedAddr): string {
  return Buffer.from(WeightedAddr.encode(weighted).finish()).toString("latin1");
}
