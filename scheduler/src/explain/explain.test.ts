import assert from "node:assert/strict";
import { test } from "node:test";
import { aFleet, aNode, aPod } from "../../test/builders/fleet.ts";

test("reports the shortage for each node and in total", () => {
  const fleet = aFleet([
    aNode("a", { cpu: "1" }),
    aNode("b", { cpu: "1" }),
    aNode("c", { taints: [{ key: "gpu", value: "true", effect: "NoSchedule" }] }),
  ]);
  fleet.bind(aPod("x", { cpu: "750m" }), "a");
  fleet.bind(aPod("y", { cpu: "900m" }), "b");
  const { summary, rejections, feasible, nearest } = fleet.explain(aPod("p", { cpu: "600m" }));
  assert.deepEqual(feasible, []);
  assert.equal(rejections[0]?.message, "insufficient cpu (needs 600m cpu, 250m free)");
  assert.equal(
    summary,
    "0/3 nodes: 2 insufficient cpu (needs 600m, largest free 250m), 1 taint gpu=true:NoSchedule",
  );
  assert.equal(nearest, "free 350m cpu on a");
});

test("suggests a change only if nothing else prevents the node", () => {
  const taints = [{ key: "gpu", value: "true", effect: "NoSchedule" as const }];
  const full = aFleet([aNode("a", { cpu: "1", taints })]);
  assert.equal(full.explain(aPod("p", { cpu: "2" })).nearest, undefined);
  const roomy = aFleet([aNode("a", { cpu: "2", taints })]);
  assert.equal(roomy.explain(aPod("p", { cpu: "2" })).nearest, "tolerate taint gpu=true:NoSchedule");
  const ported = { containers: [{ hostPorts: [{ port: 80 }] }] };
  const taken = aFleet([aNode("a")]);
  taken.bind(aPod("x", ported), "a");
  assert.equal(taken.explain(aPod("p", ported)).nearest, "free host port 80/TCP on a");
});

test("gives the figures of every short resource, each the largest of any node", () => {
  const fleet = aFleet([aNode("a", { cpu: "1" }), aNode("b", { cpu: "2" })]);
  fleet.bind(aPod("x", { cpu: "1500m", memory: "1Gi" }), "b");
  const { summary } = fleet.explain(aPod("p", { cpu: "4", memory: "20Gi" }));
  assert.equal(
    summary,
    "0/2 nodes: 2 insufficient cpu, insufficient memory (cpu needs 4, largest free 1; memory needs 20Gi, largest free 16Gi)",
  );
});

test("names every kind of reason", () => {
  const spread = [
    {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "DoNotSchedule" as const,
      labelSelector: { matchLabels: { app: "w" } },
    },
  ];
  const web = { labels: { app: "w" } };
  const anti = { required: [{ topologyKey: "hostname", labelSelector: { matchLabels: { app: "w" } } }] };
  const fleet = aFleet([
    aNode("a", { zone: "z1" }),
    aNode("b", { zone: "z2", unschedulable: true }),
    aNode("c"),
  ]);
  fleet.bind(aPod("w1", web), "a");
  const why = (parts: Parameters<typeof aPod>[1]) =>
    Object.fromEntries(fleet.explain(aPod("p", parts)).rejections.map((r) => [r.node, r.message]));
  assert.deepEqual(why({ ...web, topologySpread: spread }), {
    a: "too many replicas by zone (skew 2 in z1, at most 1)",
    b: "unschedulable",
    c: "no label zone to spread by",
  });
  assert.equal(why({ podAntiAffinity: anti }).a, "anti-affinity by hostname (1 in a)");
  assert.equal(why({ podAffinity: anti }).c, "no pod that matches the affinity");
  assert.equal(
    why({ nodeSelector: { disk: "ssd" } }).a,
    "node selector disk=ssd doesn't match (no label disk)",
  );
  assert.equal(why({ nodeSelector: { zone: "z9" } }).a, "node selector zone=z9 doesn't match (zone is z1)");
  const demanding = (key: string, values: string[]) => ({
    nodeAffinity: { required: [{ matchExpressions: [{ key, operator: "In" as const, values }] }] },
  });
  assert.equal(
    why(demanding("zone", ["z8", "z9"])).a,
    "node affinity zone in (z8, z9) doesn't match (zone is z1)",
  );
  const [either] = demanding("zone", ["z8"]).nodeAffinity.required;
  const two = { nodeAffinity: { required: either === undefined ? [] : [either, either] } };
  assert.equal(why(two).a, "none of 2 node affinity terms matches");
  assert.equal(why({ claimNodes: ["b"] }).a, "volume claims are on b");
  assert.equal(why({ runtimeClass: "kata" }).a, "runtime class kata not offered");
  const ported = { containers: [{ hostPorts: [{ port: 80 }] }] };
  fleet.bind(aPod("q", ported), "c");
  assert.equal(why(ported).c, "host port 80/TCP taken");
  fleet.bind(aPod("r", { podAntiAffinity: anti }), "c");
  assert.equal(why(web).c, "another pod's anti-affinity by hostname (1 in c)");
});

test("a feasible node is not an obstacle", () => {
  const fleet = aFleet([aNode("a"), aNode("b")]);
  const { feasible, rejections, summary, nearest } = fleet.explain(aPod("p"));
  assert.deepEqual(
    { feasible, rejections, summary, nearest },
    { feasible: ["a", "b"], rejections: [], summary: "2/2 nodes", nearest: undefined },
  );
});

test("suggests the smallest change", () => {
  const nearest = (fleet: ReturnType<typeof aFleet>, parts: Parameters<typeof aPod>[1]) =>
    fleet.explain(aPod("p", parts)).nearest;
  const tainted = aNode("t", { taints: [{ key: "team", effect: "NoSchedule" }] });
  assert.equal(nearest(aFleet([tainted]), {}), "tolerate taint team:NoSchedule");
  assert.equal(nearest(aFleet([tainted, aNode("u", { unschedulable: true })]), {}), "make u schedulable");
  assert.equal(nearest(aFleet([aNode("a", { cpu: "1" })]), { cpu: "3" }), "add 2 cpu to a, or ask for less");
});
