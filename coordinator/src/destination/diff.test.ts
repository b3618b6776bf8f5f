import assert from "node:assert/strict";
import { test } from "node:test";
import type { Update } from "@forage/proto/destination";
import type { TcpAddress } from "@forage/proto/net";
import { type Random, randomOf } from "../../test/support/random.ts";
import { type Told, updatesBetween } from "./diff.ts";
import type { Endpoint } from "./endpoints.ts";

const labels = { namespace: "shop", service: "web" };

test("the first message holds everything", () => {
  const { updates } = updatesBetween(undefined, true, [endpoint(1), endpoint(2)], labels);
  assert.equal(updates.length, 1);
  const [first] = updates;
  assert.ok(first?.update?.$case === "add");
  assert.deepEqual(first.update.value.metricLabels, labels);
  assert.deepEqual(first.update.value.addrs[0], {
    addr: { ip: { ip: { $case: "ipv4", value: 0xc0000201 } }, port: 20_001 },
    weight: 10_000,
    metricLabels: { pod: "web-1", node: "n1", workload: "web", zone: "a" },
    tlsIdentity: undefined,
    protocolHint: undefined,
    authorityOverride: undefined,
    http2: undefined,
    resourceRef: undefined,
  });
});

test("without endpoints the first message says so, and whether there is a service", () => {
  for (const exists of [true, false]) {
    const { updates } = updatesBetween(undefined, exists, [], labels);
    assert.deepEqual(updates, [{ update: { $case: "noEndpoints", value: { exists } } }]);
  }
});

test("nothing is said twice", () => {
  for (const [exists, endpoints] of [
    [true, [endpoint(1)]],
    [true, []],
    [false, []],
  ] as const) {
    const { told } = updatesBetween(undefined, exists, endpoints, labels);
    assert.deepEqual(updatesBetween(told, exists, endpoints, labels).updates, []);
  }
});

test("losing the last endpoint, and then the service, is told", () => {
  const one = updatesBetween(undefined, true, [endpoint(1)], labels);
  const none = updatesBetween(one.told, true, [], labels);
  assert.deepEqual(casesOf(none.updates), ["noEndpoints"]);
  const gone = updatesBetween(none.told, false, [], labels);
  assert.deepEqual(gone.updates, [{ update: { $case: "noEndpoints", value: { exists: false } } }]);
  assert.deepEqual(casesOf(updatesBetween(gone.told, true, [endpoint(1)], labels).updates), ["add"]);
});

test("a pod that takes over another's address is added anew, and its address is never removed", () => {
  const before = updatesBetween(undefined, true, [endpoint(1)], labels);
  const { updates } = updatesBetween(before.told, true, [{ ...endpoint(1), pod: "web-9" }], labels);
  assert.deepEqual(casesOf(updates), ["add"]);
});

test("two pods that claim one address count as one, and are not told again and again", () => {
  const both = [endpoint(1), { ...endpoint(1), pod: "web-9" }];
  const { updates, told } = updatesBetween(undefined, true, both, labels);
  assert.ok(updates[0]?.update?.$case === "add");
  assert.equal(updates[0].update.value.addrs.length, 1);
  assert.deepEqual(updatesBetween(told, true, both, labels).updates, []);
});

test("what proxies can't connect to isn't told", () => {
  const named = { ...endpoint(1), address: "host-1.example" };
  const { updates, told } = updatesBetween(undefined, true, [named], labels);
  assert.deepEqual(casesOf(updates), ["noEndpoints"]);
  assert.deepEqual(casesOf(updatesBetween(told, true, [named, endpoint(2)], labels).updates), ["add"]);
});

test("the updates, done in order, always lead to the full set", () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = randomOf(seed);
    const client = new Client();
    let told: Told | undefined;
    for (let step = 0; step < 20; step++) {
      const exists = random.chance(0.9);
      const endpoints = exists ? someEndpoints(random) : [];
      const keys = endpoints.map(keyOf);
      const { updates, told: next } = updatesBetween(told, exists, endpoints, labels);
      if (told === undefined) assert.equal(updates.length, 1, "the first message is complete");
      assert.ok(["noEndpoints", "add", "remove", "remove,add", ""].includes(casesOf(updates).join()));
      for (const update of updates) client.take(update, keys);
      assert.deepEqual(client.known(), endpoints.map(described).sort(), `seed ${seed} step ${step}`);
      told = next;
    }
  }
});

/** What a proxy makes of updates. */
class Client {
  readonly #addresses = new Map<string, string>();

  take({ update }: Update, wanted: readonly string[]): void {
    switch (update?.$case) {
      case "add":
        for (const { addr, metricLabels } of update.value.addrs)
          this.#addresses.set(textOf(addr), `${textOf(addr)} ${metricLabels.pod}@${metricLabels.node}`);
        break;
      case "remove":
        for (const addr of update.value.addrs) {
          assert.ok(this.#addresses.delete(textOf(addr)), "only what is known is removed");
          assert.ok(!wanted.includes(textOf(addr)), "what is still wanted is never removed");
        }
        break;
      case "noEndpoints":
        this.#addresses.clear();
        break;
      default:
        assert.fail("an empty update");
    }
  }

  known(): string[] {
    return [...this.#addresses.values()].sort();
  }
}

function someEndpoints(random: Random): Endpoint[] {
  const numbers = [1, 2, 3, 4, 5].filter(() => random.chance(0.5));
  return numbers.map((number) => {
    return { ...endpoint(number), pod: `web-${random.below(3)}`, node: random.pick(["n1", "n2"]) };
  });
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
  };
}

function casesOf(updates: readonly Update[]): (string | undefined)[] {
  return updates.map(({ update }) => update?.$case);
}

function keyOf({ address, port }: Endpoint): string {
  return `${address}:${port}`;
}

function described(e: Endpoint): string {
  return `${keyOf(e)} ${e.pod}@${e.node}`;
}

function textOf(address: TcpAddress | undefined): string {
  const ip = address?.ip?.ip;
  assert.ok(ip?.$case === "ipv4");
  return `192.0.2.${ip.value & 0xff}:${address?.port}`;
}
