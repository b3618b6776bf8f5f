import assert from "node:assert/strict";
import { test } from "node:test";
import { aFleet, aNode, aPod, names } from "../test/builders/fleet.ts";
import type { Fleet } from "./fleet.ts";

test("a pod is placed on a node with room, and stays pending if there is none", () => {
  const fleet = aFleet([aNode("small", { cpu: "1" }), aNode("large", { cpu: "8" })]);
  assert.equal(fleet.schedule(aPod("a", { cpu: "2" })), "large");
  assert.equal(fleet.nodeOf("default/a"), "large");
  assert.deepEqual(fleet.podsOn("large"), ["default/a"]);
  assert.equal(fleet.place(aPod("b", { cpu: "9" })), undefined);
});

test("lists the feasible nodes without binding the pod", () => {
  const fleet = aFleet([
    aNode("small", { cpu: "1" }),
    aNode("large", { cpu: "8" }),
    aNode("huge", { cpu: "9" }),
  ]);
  assert.deepEqual(fleet.feasibleNodes(aPod("a", { cpu: "2" })).sort(), ["huge", "large"]);
  assert.deepEqual(fleet.feasibleNodes(aPod("a", { cpu: "10" })), []);
  assert.equal(fleet.nodeOf("default/a"), undefined);
});

test("rejects unknown and duplicate names, and leaves the fleet unchanged", () => {
  const fleet = aFleet([aNode("n")]);
  fleet.bind(aPod("a"), "n");
  assert.throws(() => fleet.bind(aPod("a"), "n"), { code: "already_bound" });
  assert.throws(() => fleet.bind(aPod("b"), "m"), { code: "unknown_node" });
  assert.throws(() => fleet.placeBatch(aPod("t"), ["b", "a"]), { code: "already_bound" });
  assert.throws(() => fleet.setNode(aNode("n", { cpu: "4x" })), { code: "invalid_quantity" });
  assert.deepEqual(fleet.podsOn("n"), ["default/a"]);
  assert.equal(fleet.unbind("default/zzz"), false);
  assert.equal(fleet.setTerminating("default/zzz"), false);
  assert.deepEqual(fleet.removeNode("zzz"), []);
});

test("removing a node removes its pods", () => {
  const fleet = aFleet([aNode("n"), aNode("m")]);
  fleet.bind(aPod("a"), "n");
  assert.deepEqual(fleet.removeNode("n"), ["default/a"]);
  assert.equal(fleet.nodeOf("default/a"), undefined);
  assert.deepEqual(fleet.nodeNames(), ["m"]);
  fleet.setNode(aNode("n2"));
  assert.deepEqual(fleet.podsOn("n2"), []);
});

test("replicas of a workload spread over zones and hosts by default", () => {
  const nodes = Array.from({ length: 9 }, (_, i) => aNode(`n${i}`, { zone: `z${i % 3}` }));
  const fleet = aFleet(nodes);
  const placed = fleet.placeBatch(aPod("web", { workload: "default/web" }), names(6));
  assert.equal(new Set(placed).size, 6, "six hosts");
  const zones = placed.map((name) => Number(name?.slice(1)) % 3);
  for (const zone of [0, 1, 2]) assert.equal(zones.filter((z) => z === zone).length, 2);
});

test("replicas with their own spread constraint share a host if the constraint allows it", () => {
  const fleet = aFleet(["a", "b", "c", "d"].map((name, i) => aNode(name, { zone: `z${i % 2}` })));
  const template = aPod("web", {
    ...{ workload: "default/web", labels: { app: "web" } },
    topologySpread: [
      {
        ...{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" },
        labelSelector: { matchLabels: { app: "web" } },
      },
    ],
  });
  assert.equal(new Set(fleet.placeBatch(template, names(4))).size, 2);
});

test("pods of different workloads share a host instead", () => {
  const fleet = aFleet(Array.from({ length: 9 }, (_, i) => aNode(`n${i}`)));
  const placed = names(6).map((name) => fleet.schedule(aPod(name, { workload: name })));
  assert.equal(new Set(placed).size, 1);
});

test("a rollout spreads the new revision, whatever the placement of the old one", () => {
  const fleet = aFleet([aNode("a"), aNode("b")]);
  const topologySpread = [
    { maxSkew: 1, topologyKey: "hostname", whenUnsatisfiable: "DoNotSchedule" as const, labelSelector: {} },
  ].map((c) => ({ ...c, labelSelector: { matchLabels: { app: "web" } } }));
  const web = (name: string, revision: string) =>
    aPod(name, { labels: { app: "web" }, topologySpread, revision });
  fleet.bind(web("old-1", "1"), "a");
  fleet.bind(web("old-2", "1"), "a");
  const placed = fleet.placeBatch(web("new", "2"), names(2));
  assert.deepEqual(new Set(placed), new Set(["a", "b"]));
});

test("pods without device requests avoid nodes with devices", () => {
  const gpu = aNode("gpu", { allocatable: { cpu: "4", memory: "16Gi", pods: "110", "nvidia.com/gpu": "2" } });
  const fleet = aFleet([gpu, aNode("plain")]);
  assert.equal(fleet.schedule(aPod("a")), "plain");
  const wants = { containers: [{ requests: { cpu: "1", "nvidia.com/gpu": "1" } }] };
  assert.equal(fleet.schedule(aPod("b", wants)), "gpu");
});

test("claims and runtime classes restrict a pod to nodes", () => {
  const fleet = aFleet([aNode("a"), aNode("b", { runtimeClasses: ["gvisor"] })]);
  assert.equal(fleet.place(aPod("p", { claimNodes: ["a"] })), "a");
  assert.equal(fleet.place(aPod("p", { claimNodes: ["a", "b"] })), undefined);
  assert.equal(fleet.place(aPod("p", { runtimeClass: "gvisor" })), "b");
  assert.equal(fleet.place(aPod("p", { runtimeClass: "kata" })), undefined);
});

test("a change of a node applies from the next call on", () => {
  const fleet = aFleet([aNode("a")]);
  fleet.bind(aPod("p", { cpu: "3" }), "a");
  assert.equal(fleet.place(aPod("q", { cpu: "2" })), undefined);
  fleet.setNode(aNode("a", { cpu: "8" }));
  assert.equal(fleet.place(aPod("q", { cpu: "2" })), "a");
  fleet.setNode(aNode("a", { cpu: "8", unschedulable: true }));
  assert.equal(fleet.place(aPod("q")), undefined);
});

test("the same input gives the same result, whatever the order in which nodes were added", () => {
  const nodes = Array.from({ length: 40 }, (_, i) => aNode(`n${i}`, { zone: `z${i % 4}` }));
  const place = (fleet: Fleet) => fleet.placeBatch(aPod("web", { workload: "w" }), names(100));
  assert.deepEqual(place(aFleet(nodes)), place(aFleet([...nodes].reverse())));
});

test("bounds the memory of cached results, and dropping them changes no result", () => {
  const fleet = aFleet(
    Array.from({ length: 20 }, (_, i) =>
      aNode(`n${i}`, {
        zone: `z${i % 4}`,
        cpu: "64",
        allocatable: { cpu: "64", memory: "64Gi", pods: "1000" },
      }),
    ),
  );
  const topologySpread = (app: string) => [
    {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "DoNotSchedule" as const,
      labelSelector: { matchLabels: { app } },
    },
  ];
  for (let i = 0; i < 3000; i++) {
    const app = `a${i % 1500}`;
    const pod = aPod(`p${i}`, {
      cpu: `${1 + (i % 97)}m`,
      memory: "1Mi",
      labels: { app, i: `${i}` },
      topologySpread: topologySpread(app),
    });
    const node = fleet.schedule(pod);
    assert.ok(node !== undefined);
  }
  const zone = (key: `default/${string}`) => Number(fleet.nodeOf(key)?.slice(1)) % 4;
  for (let i = 0; i < 1500; i++) assert.notEqual(zone(`default/p${i}`), zone(`default/p${i + 1500}`));
});
