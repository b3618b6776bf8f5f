import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { Update } from "@forage/proto/destination";
import { ReplayedClient, textOf } from "../../test/support/replayed-client.ts";
import type { Endpoint } from "../endpoints/endpoints.ts";
import { toTcpAddress } from "../ip/address.ts";
import {
  type AddressSet,
  encodeUpdates,
  type PublishedAddress,
  sameSet,
  updatesBetween,
} from "./address-set.ts";
import { endpointLabels, weightedAddress } from "./weighted-address.ts";

const METRIC_LABELS = { namespace: "shop", service: "web" };
const nothing = aSet([], true);

test("sends the complete set in the first message", () => {
  const updates = updatesBetween(undefined, aSet([endpoint(1), endpoint(2)]));
  assert.equal(updates.length, 1);
  const [first] = updates;
  assert.ok(first?.update?.$case === "add");
  assert.deepEqual(first.update.value.metricLabels, METRIC_LABELS);
  assert.deepEqual(first.update.value.addrs[0], {
    addr: { ip: { ip: { $case: "ipv4", value: 0xc0000201 } }, port: 20_001 },
    weight: 10_000,
    metricLabels: { pod: "web-1", node: "n1", workload: "web", zone: "a", zone_locality: "local" },
    tlsIdentity: undefined,
    protocolHint: undefined,
    authorityOverride: undefined,
    http2: undefined,
    resourceRef: undefined,
  });
  assert.deepEqual(
    encodeUpdates(updates).map((bytes) => Update.decode(bytes)),
    updates,
  );
});

test("reports in the first message that there are no endpoints, and whether the service exists", () => {
  for (const exists of [true, false]) {
    assert.deepEqual(updatesBetween(undefined, aSet([], exists)), [
      { update: { $case: "noEndpoints", value: { exists } } },
    ]);
  }
});

test("sends nothing twice, even between sets that were built separately", () => {
  for (const make of [() => aSet([endpoint(1)]), () => aSet([], true), () => aSet([], false)])
    assert.deepEqual(updatesBetween(make(), make()), []);
});

test("sends the loss of the last endpoint, and then of the service", () => {
  const one = aSet([endpoint(1)]);
  assert.deepEqual(casesOf(updatesBetween(one, nothing)), ["noEndpoints"]);
  assert.deepEqual(updatesBetween(nothing, aSet([], false)), [
    { update: { $case: "noEndpoints", value: { exists: false } } },
  ]);
  assert.deepEqual(casesOf(updatesBetween(aSet([], false), one)), ["add"]);
});

test("adds the address again when another pod gets it, and does not remove it", () => {
  const updates = updatesBetween(aSet([endpoint(1)]), aSet([{ ...endpoint(1), pod: "web-9" }]));
  assert.deepEqual(casesOf(updates), ["add"]);
});

test("removes the old address of a pod that restarts at another address", () => {
  const moved = { ...endpoint(1), address: "192.0.2.99" };
  const updates = updatesBetween(aSet([endpoint(1)]), aSet([moved]));
  assert.deepEqual(casesOf(updates), ["remove", "add"]);
});

test("treats sets as equal only if they share their addresses", () => {
  const set = aSet([endpoint(1), endpoint(2)]);
  assert.ok(sameSet(set, { ...set }));
  assert.ok(!sameSet(set, { ...set, exists: false }));
  assert.ok(!sameSet(set, aSet([endpoint(1), endpoint(2)])));
  assert.ok(!sameSet(set, aSet([endpoint(1)])));
});

test("always reaches the full set by the updates in order, regardless of the states that a reader misses", () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const client = new ReplayedClient();
    let sent: AddressSet | undefined;
    for (let step = 0; step < 20; step++) {
      const exists = random.chance(0.9);
      const set = aSet(exists ? someEndpoints(random) : [], exists);
      if (sent !== undefined && random.chance(0.4)) continue;
      const updates = updatesBetween(sent, set);
      if (sent === undefined) assert.equal(updates.length, 1, "the first message is complete");
      assert.ok(["noEndpoints", "add", "remove", "remove,add", ""].includes(casesOf(updates).join()));
      const expected = [...set.addresses.values()].map(({ wire }) => textOf(wire.addr));
      for (const update of updates) client.apply(update, expected);
      assert.deepEqual(client.known(), describedSet(set), `seed ${seed} step ${step}`);
      assert.equal(client.exists, set.addresses.size > 0 || exists);
      sent = set;
    }
  }
});

function someEndpoints(random: Random): Endpoint[] {
  const numbers = [1, 2, 3, 4, 5].filter(() => random.chance(0.5));
  return numbers.map((number) => {
    return { ...endpoint(number), pod: `web-${random.below(3)}`, node: random.pick(["n1", "n2"]) };
  });
}

function aSet(endpoints: readonly Endpoint[], exists = true): AddressSet {
  return {
    exists,
    metricLabels: METRIC_LABELS,
    addresses: new Map(endpoints.map((e) => [`${e.address}|${e.port}`, publishedOf(e)])),
  };
}

function publishedOf(e: Endpoint): PublishedAddress {
  const addr = toTcpAddress(e.address, e.port);
  assert.ok(addr !== undefined);
  const wire = weightedAddress(addr, endpointLabels(e, "local"), undefined, { port: 80, name: "" });
  return { endpoint: e, hints: undefined, wire: { ...wire, addr } };
}

function describedSet({ addresses }: AddressSet): string[] {
  const described = [...addresses.values()].map(
    ({ endpoint: e, wire }) => `${textOf(wire.addr)} ${e.pod}@${e.node}`,
  );
  return described.sort();
}

function endpoint(number: number): Endpoint {
  return {
    address: `192.0.2.${number}`,
    port: 20_000 + number,
    pod: `web-${number}`,
    node: "n1",
    zone: "a",
    workload: "web",
    protocol: "TCP",
    opaque: undefined,
    localOnly: false,
  };
}

function casesOf(updates: readonly Update[]): (string | undefined)[] {
  return updates.map(({ update }) => update?.$case);
}
