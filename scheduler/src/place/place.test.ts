import assert from "node:assert/strict";
import { test } from "node:test";
import { aFleet, aNode, aPod } from "../../test/builders/fleet.ts";
import type { NodeSpec, PodSpec, TopologySpreadConstraint } from "../types.ts";

const WEB = { labels: { app: "web" } };
const zones = (parts: Partial<TopologySpreadConstraint> = {}): Partial<PodSpec> => ({
  ...WEB,
  topologySpread: [
    {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "DoNotSchedule",
      labelSelector: { matchLabels: { app: "web" } },
      ...parts,
    },
  ],
});

/** Returns the feasible nodes, with the given number of the application's pods on each node. */
function feasible(nodes: readonly NodeSpec[], counts: readonly number[], pod: Partial<PodSpec>): string {
  const fleet = aFleet(nodes);
  for (const [i, count] of counts.entries()) {
    for (let n = 0; n < count; n++)
      fleet.bind(aPod(`${i}-${n}`, { ...WEB, cpu: "1m" }), nodes[i]?.name ?? "");
  }
  return fleet.explain(aPod("p", pod)).feasible.join("");
}

test("hard spread: counted pods and nodes, and the reference for the skew", () => {
  const [a, b, c] = [aNode("a", { zone: "z1" }), aNode("b", { zone: "z2" }), aNode("c", { zone: "z3" })];
  const bare = aNode("x");
  const tainted = aNode("c", { zone: "z3", taints: [{ key: "k", effect: "NoSchedule" }] });
  const ssd = aNode("a", { zone: "z1", labels: { disk: "ssd" } });
  const table: [string, readonly NodeSpec[], readonly number[], Partial<PodSpec>, string][] = [
    ["no more than maxSkew above the least", [a, b, c], [1, 0, 0], zones(), "bc"],
    ["a larger skew", [a, b, c], [1, 0, 0], zones({ maxSkew: 2 }), "abc"],
    ["a pod that doesn't match itself adds nothing", [a, b, c], [1, 0, 0], { ...zones(), labels: {} }, "abc"],
    ["a node without the key can't take it, and is no domain", [a, b, bare], [1, 1, 0], zones(), "ab"],
    ["fewer domains than required: the least is 0", [a, b], [1, 1], zones({ minDomains: 3 }), ""],
    ["as many domains as required", [a, b], [1, 1], zones({ minDomains: 2 }), "ab"],
    ["an empty selector counts nothing", [a, b, c], [5, 0, 0], zones({ labelSelector: {} }), "abc"],
    ["a tainted node's domain counts", [a, b, tainted], [1, 1, 0], zones(), ""],
    ["unless taints are honoured", [a, b, tainted], [1, 1, 0], zones({ nodeTaintsPolicy: "Honor" }), "ab"],
    [
      "nodes outside the selector are no domains",
      [ssd, b, c],
      [1, 0, 0],
      { ...zones(), nodeSelector: { disk: "ssd" } },
      "a",
    ],
    [
      "unless affinity is ignored",
      [ssd, b, c],
      [1, 0, 0],
      { ...zones({ nodeAffinityPolicy: "Ignore" }), nodeSelector: { disk: "ssd" } },
      "",
    ],
    [
      "soft spread rejects no node",
      [a, b, c],
      [9, 0, 0],
      zones({ whenUnsatisfiable: "ScheduleAnyway" }),
      "abc",
    ],
    ["another namespace's pods don't count", [a, b, c], [1, 0, 0], { ...zones(), namespace: "other" }, "abc"],
  ];
  for (const [what, nodes, counts, pod, expected] of table)
    assert.equal(feasible(nodes, counts, pod), expected, what);
});

test("terminating pods don't count in spread, but still use their node", () => {
  const fleet = aFleet([aNode("a", { zone: "z1", cpu: "1" }), aNode("b", { zone: "z2", cpu: "1" })]);
  fleet.bind(aPod("w", WEB), "a");
  assert.deepEqual(fleet.explain(aPod("p", zones())).feasible, ["b"]);
  fleet.setTerminating("default/w");
  assert.deepEqual(fleet.explain(aPod("p", zones())).feasible, ["a", "b"]);
  assert.deepEqual(fleet.explain(aPod("p", { ...zones(), cpu: "1" })).feasible, ["b"]);
});

test("the first pod of an affinity may be placed anywhere if it matches its own terms, and the next ones follow it", () => {
  const together = { required: [{ topologyKey: "zone", labelSelector: { matchLabels: { app: "web" } } }] };
  const fleet = aFleet([aNode("a", { zone: "z1" }), aNode("b", { zone: "z2" }), aNode("x")]);
  assert.deepEqual(fleet.explain(aPod("p", { podAffinity: together })).feasible, []);
  assert.deepEqual(fleet.explain(aPod("p", { ...WEB, podAffinity: together })).feasible, ["a", "b"]);
  fleet.bind(aPod("w", WEB), "b");
  assert.deepEqual(fleet.explain(aPod("p", { ...WEB, podAffinity: together })).feasible, ["b"]);
});

test("a pod is placed on the one host of many with its preferred partner, also repeatedly", () => {
  const nodes = Array.from({ length: 100 }, (_, i) => aNode(`n${i}`));
  const fleet = aFleet(nodes, "kube-least");
  fleet.bind(aPod("w", { ...WEB, cpu: "10m" }), "n40");
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: WEB.labels } };
  const drawn = aPod("p", { podAffinity: { preferred: [{ weight: 100, term }] } });
  assert.deepEqual(
    Array.from({ length: 40 }, () => fleet.place(drawn)),
    Array.from({ length: 40 }, () => "n40"),
  );
});

test("a preference outweighs packing, and packing decides among preferred nodes", () => {
  const fleet = aFleet([
    aNode("a"),
    aNode("b", { labels: { disk: "ssd" } }),
    aNode("c", { labels: { disk: "ssd" } }),
  ]);
  fleet.bind(aPod("w", { cpu: "2" }), "a");
  const preference = { matchExpressions: [{ key: "disk", operator: "In" as const, values: ["ssd"] }] };
  assert.equal(fleet.place(aPod("p")), "a");
  fleet.bind(aPod("v", { cpu: "1" }), "c");
  assert.equal(fleet.place(aPod("p", { nodeAffinity: { preferred: [{ weight: 1, preference }] } })), "c");
  const reluctant = aNode("a", { taints: [{ key: "k", effect: "PreferNoSchedule" }] });
  fleet.setNode(reluctant);
  assert.equal(fleet.place(aPod("p")), "c");
});
