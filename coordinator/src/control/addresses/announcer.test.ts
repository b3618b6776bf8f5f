import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { type AnnouncedService, chooseAnnouncers } from "./announcer.ts";
import { type AnnouncingNode, NodeNetworks, parseNetwork } from "./node-networks.ts";

const IP = "192.0.2.50";
const HERE = ["192.0.2.0/24"];

describe("chooseAnnouncers: the node that announces an address", () => {
  for (const [what, before, nodes, expected] of [
    ["is the only node", "", [node("a")], "a alone"],
    ["is any of several equal nodes", "", [node("a"), node("b")], /^[ab]$/],
    ["stays the same while that node is ready", "a", [node("a"), node("b"), node("c")], "a"],
    ["changes when that node is lost", "a", [node("a", { ready: false }), node("b")], "b"],
    [
      "changes when that node is drained",
      "a",
      [node("a", { cordoned: true, draining: true }), node("b")],
      "b",
    ],
    ["stays the same when that node is cordoned", "a", [node("a", { cordoned: true }), node("b")], "a"],
    ["is a node that isn't cordoned, if there is one", "", [node("a", { cordoned: true }), node("b")], "b"],
    ["is a cordoned node if there is no other", "", [node("a", { cordoned: true })], "a alone"],
    [
      "is a drained node if there is no other",
      "a",
      [node("a", { cordoned: true, draining: true })],
      "a alone",
    ],
    [
      "stays the same while all nodes are unreachable",
      "b",
      [node("a", { ready: false }), node("b", { ready: false })],
      "b",
    ],
    ["is not chosen while all nodes are unreachable", "", [node("a", { ready: false })], ""],
    ["is never one outside the address's network", "", [node("a", { networks: ["198.51.100.0/24"] })], ""],
    ["changes when that node has left the network", "a", [node("a", { networks: [] }), node("b")], "b alone"],
    ["changes when that node was removed", "gone", [node("b")], "b alone"],
    ["is none in a cluster without nodes", "a", [], ""],
  ] as const) {
    test(what, () => {
      const found = textOf(
        chooseAnnouncers([{ key: "shop/web", ips: [IP], before }], NodeNetworks.of(nodes)).get("shop/web"),
      );
      if (typeof expected === "string") assert.equal(found, expected);
      else assert.match(found, expected);
    });
  }
});

test("prefers a node in the networks of both addresses to a node in one of them", () => {
  const service = { key: "shop/web", ips: [IP, "2001:db8::50"], before: "a" };
  const both = node("b", { networks: [...HERE, "2001:db8::/64"] });
  assert.equal(
    textOf(chooseAnnouncers([service], NodeNetworks.of([node("a"), both])).get("shop/web")),
    "b alone",
  );
  assert.equal(textOf(chooseAnnouncers([service], NodeNetworks.of([node("a")])).get("shop/web")), "a alone");
});

for (const [cidr, address, expected] of [
  ["192.0.2.7/24", "192.0.2.200", true],
  ["192.0.2.7/24", "192.0.3.1", false],
  ["0.0.0.0/0", "192.0.3.1", true],
  ["0.0.0.0/0", "::1", false],
  ["2001:db8::/64", "2001:db8::ffff", true],
  ["2001:db8::/64", "2001:db8:1::ffff", false],
] as const) {
  test(`${address} is ${expected ? "" : "not "}in ${cidr}`, () =>
    assert.equal(parseNetwork(cidr)?.has(address), expected));
}

for (const text of ["192.0.2.0", "192.0.2.0/x", "a/8", "192.0.2.0/24/1"]) {
  test(`${text} is not a valid network`, () => assert.equal(parseNetwork(text), undefined));
}

test("random node failures: addresses are on ready nodes, move only when their node is lost, and are spread evenly", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = randomOf(seed);
    const names = Array.from({ length: 2 + random.below(5) }, (_, index) => `n${index}`);
    let nodes = names.map((name) => node(name));
    let services: AnnouncedService[] = Array.from({ length: 1 + random.below(20) }, (_, index) => ({
      key: `s${index}`,
      ips: [`192.0.2.${index + 1}`],
      before: "",
    }));
    for (let step = 0; step < 20; step++) {
      nodes = nodes.map((it) => (random.chance(0.2) ? node(it.name, { ready: !it.ready }) : it));
      const found = chooseAnnouncers(services, NodeNetworks.of(nodes));
      const isReady = (name: string): boolean => nodes.some((it) => it.name === name && it.ready);
      const counts = new Map(nodes.filter((it) => it.ready).map(({ name }) => [name, 0]));
      for (const { key, before } of services) {
        const chosen = found.get(key)?.node ?? "";
        if (isReady(before)) assert.equal(chosen, before, `seed ${seed}: ${key} moved without need`);
        else if (counts.size > 0) assert.ok(isReady(chosen), `seed ${seed}: ${key} has no ready node`);
        else assert.equal(chosen, before, `seed ${seed}: ${key} moved where no node is any better`);
        if (!isReady(before) && counts.has(chosen)) counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
      }
      if (step === 0 && counts.size > 0)
        assert.ok(Math.max(...counts.values()) - Math.min(...counts.values()) <= 1, `seed ${seed}: uneven`);
      services = services.map((it) => ({ ...it, before: found.get(it.key)?.node ?? "" }));
      assert.deepEqual(
        chooseAnnouncers(services, NodeNetworks.of(nodes)),
        found,
        `seed ${seed}: a second evaluation changes the result`,
      );
    }
  }
});

interface NodeFields extends Partial<Omit<AnnouncingNode, "networks" | "name">> {
  readonly networks?: readonly string[];
}

function node(name: string, { networks = HERE, ...fields }: NodeFields = {}): AnnouncingNode {
  const parsed = networks.flatMap((it) => parseNetwork(it) ?? []);
  return { name, ready: true, cordoned: false, draining: false, ...fields, networks: parsed };
}

function textOf(found: { readonly node: string; readonly alone: boolean } | undefined): string {
  return found === undefined
    ? "?"
    : [found.node, ...(found.alone && found.node !== "" ? ["alone"] : [])].join(" ");
}
