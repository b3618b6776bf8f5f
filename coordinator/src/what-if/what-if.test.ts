import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkloadOutcome } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { aPod } from "../../test/support/entries.ts";
import { aContainerService } from "../../test/support/requests.ts";
import {
  aRestingFleet as aFleet,
  type Change,
  aSizedNode as node,
} from "../../test/support/resting-fleet.ts";
import { CoordinatorError } from "../errors.ts";
import { type Placement, workloadOutcomes } from "./outcome.ts";
import type { ReadyCounts } from "./ready-counts.ts";

test("moves pods of a lost node to other nodes, while a service dips", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2"), node("n3")], [web(6)]);
  const { workloads, resources, safe, notes } = await fleet.whatIf({ $case: "loseNode", value: "n2" });
  const [outcome] = workloads;
  assert.ok(outcome);
  assert.deepEqual(outcome.left, [{ node: "n2", pods: 2 }]);
  assert.equal(podsOf(outcome.came), 2);
  assert.deepEqual([outcome.readyBefore, outcome.readyLowest, outcome.readyAfter], [6, 4, 6]);
  assert.deepEqual(outcome.waiting, []);
  // A rolling update of six may miss a quarter of them, which is one. Two are missing for a while.
  assert.equal(outcome.minimum, 5);
  assert.equal(safe, false);
  const cpu = resources.find(({ resource }) => resource === "cpu");
  assert.deepEqual(
    [cpu?.requestedBefore, cpu?.allocatableBefore, cpu?.requestedAfter, cpu?.allocatableAfter],
    ["3", "6", "3", "4"],
  );
  assert.deepEqual(notes, []);
});

test("lets pods wait that find no node, with the reason", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2")], [web(7)]);
  const { workloads, safe } = await fleet.whatIf({ $case: "loseNode", value: "n1" });
  // The loss of one of two nodes is not a mass loss. Four of seven pods fit on the remaining node.
  assert.equal(workloads[0]?.waiting[0]?.pods, 3);
  assert.match(workloads[0]?.waiting[0]?.why ?? "", /insufficient cpu/);
  assert.equal(workloads[0]?.waiting[0]?.already, 0);
  assert.equal(safe, false);
});

test("loses all nodes with a label, and accepts zone for the zone's label", async (t) => {
  const zone = (name: string) => ({ "topology.kubernetes.io/zone": name });
  const nodes = [node("n1", zone("a")), node("n2", zone("a")), node("n3", zone("b")), node("n4", zone("b"))];
  const fleet = await aFleet(t, nodes, [web(4)]);
  const { workloads } = await fleet.whatIf({ $case: "loseNodes", value: { key: "zone", value: "a" } });
  const { left = [], came = [] } = workloads[0] ?? {};
  assert.ok(left.length > 0 && left.every(({ node: name }) => name === "n1" || name === "n2"));
  assert.ok(came.every(({ node: name }) => name === "n3" || name === "n4"));
  assert.equal(podsOf(left), podsOf(came));
});

test("replaces no pod when most nodes are lost at once, and notes the reason", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2"), node("n3")], [web(3)]);
  const lose = ["n1", "n2"].map((value): Change => ({ $case: "loseNode", value }));
  const { workloads, notes, safe } = await fleet.whatIf(...lose);
  assert.match(notes.join(), /2 of 3 nodes would be lost at once/);
  assert.deepEqual(workloads[0]?.came, []);
  assert.deepEqual([workloads[0]?.readyBefore, workloads[0]?.readyAfter], [3, 1]);
  assert.equal(safe, false);
});

test("assigns waiting pods to added nodes", async (t) => {
  const fleet = await aFleet(t, [node("n1")], [web(6)]);
  const { workloads, resources } = await fleet.whatIf({
    $case: "addNodes",
    value: { count: 1, like: "n1" },
  });
  assert.deepEqual(workloads[0]?.came, [{ node: "n1-added-1", pods: 2 }]);
  assert.deepEqual(workloads[0]?.waiting, []);
  assert.equal(resources.find(({ resource }) => resource === "cpu")?.allocatableAfter, "4");
});

test("scales a service to as many pods as fit, and counts already waiting pods separately", async (t) => {
  const fleet = await aFleet(t, [node("n1")], [web(5)]);
  const value = { namespace: "shop", name: "web", replicas: 7 };
  const { workloads, safe } = await fleet.whatIf({ $case: "scale", value });
  assert.deepEqual(
    workloads[0]?.waiting.map(({ pods, already }) => [pods, already]),
    [[3, 1]],
  );
  assert.equal(safe, false);
});

test("drains a node without a service falling below its minimum", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2"), node("n3")], [web(6)]);
  const { workloads, safe } = await fleet.whatIf({ $case: "drainNode", value: "n1" });
  assert.deepEqual(workloads[0]?.left, [{ node: "n1", pods: 2 }]);
  assert.equal(podsOf(workloads[0]?.came ?? []), 2);
  assert.ok((workloads[0]?.readyLowest ?? 0) >= (workloads[0]?.minimum ?? 6));
  assert.equal(safe, true);
});

test("combines the suppositions of one request", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2")], [web(8)]);
  const { workloads } = await fleet.whatIf(
    { $case: "addNodes", value: { count: 1, like: "n2" } },
    { $case: "loseNode", value: "n1" },
  );
  assert.deepEqual(workloads[0]?.came, [{ node: "n2-added-1", pods: 4 }]);
  assert.deepEqual(workloads[0]?.waiting, []);
});

test("lists the losses of any one node that leave pods without a node, the worst first", async (t) => {
  const big = node("n3", {}, "4");
  const fleet = await aFleet(t, [node("n1"), node("n2"), big], [web(14)]);
  const { losses, nodesTried, safe } = await fleet.whatIf({ $case: "loseAnyNode", value: true });
  assert.equal(nodesTried, 3);
  assert.deepEqual(
    losses.map(({ node: name, waiting }) => [name, waiting[0]?.pods]),
    [
      ["n3", fleet.podsOn("n3") - (8 - fleet.podsOn("n1") - fleet.podsOn("n2"))],
      ...["n1", "n2"].map((name) => [name, fleet.podsOn(name) - fleet.free(name)]),
    ].filter(([, pods]) => Number(pods) > 0),
  );
  assert.equal(safe, false);
  // A dry run must not affect the next one.
  assert.deepEqual((await fleet.whatIf({ $case: "loseAnyNode", value: true })).losses, losses);
});

test("lists only workloads of which a pod moves or waits, or that dip", () => {
  const key = "shop/forage_container_service/web";
  const pods = (...counts: readonly (readonly [string, number])[]) => new Map([[key, new Map(counts)]]);
  const placement = (nodes: ReturnType<typeof pods>, waiting = 0): Placement => ({
    nodes,
    unbound: new Map([[key, Array.from({ length: waiting }, () => aPod({ node: "" }))]]),
  });
  const listed = (before: Placement, after: Placement, lowest = 2): boolean => {
    const ready = { keys: () => [key], before: () => 2, lowest: () => lowest, now: () => 2 };
    const input = { before, after, ready: ready as unknown as ReadyCounts, whyUnplaced: () => "no room" };
    return workloadOutcomes({ ...input, state: { resource: () => undefined } as never }).length === 1;
  };
  const still = placement(pods(["n1", 2]));
  assert.equal(listed(still, still), false);
  assert.equal(listed(still, still, 1), true, "it dips");
  assert.equal(listed(still, placement(pods(["n1", 1]))), true, "one leaves");
  assert.equal(listed(still, placement(pods(["n1", 3]))), true, "one comes");
  assert.equal(listed(still, placement(pods(["n1", 1], ["n2", 1]))), true, "one moves");
  assert.equal(listed(still, placement(pods(["n1", 2]), 1)), true, "one waits");
  assert.equal(listed(still, placement(pods(["n1", 3]), 1)), true, "one comes and one waits");
});

test("changes nothing in the fleet itself", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2")], [web(4)]);
  const before = fleet.store.revision;
  await fleet.whatIf({ $case: "drainNode", value: "n1" });
  await fleet.whatIf({ $case: "loseNode", value: "n1" });
  assert.equal(fleet.store.revision, before);
});

for (const [what, changes, message] of [
  ["nothing", [], /suppositions: at least one/],
  ["an unknown node", [{ $case: "loseNode", value: "n9" }], /suppositions\[0\]\.lose_node: .*"n9"/],
  ["an unknown node to drain", [{ $case: "drainNode", value: "n9" }], /\[0\]\.drain_node: .*"n9"/],
  [
    "a label that no node has",
    [{ $case: "loseNodes", value: { key: "zone", value: "x" } }],
    /lose_nodes: no node has the label zone=x/,
  ],
  [
    "too many nodes",
    [{ $case: "addNodes", value: { count: 1_001, like: "n1" } }],
    /add_nodes\.count: must be from 1 to 1000/,
  ],
  ["no model", [{ $case: "addNodes", value: { count: 1, like: "n9" } }], /add_nodes\.like: .*"n9"/],
  [
    "an unknown service",
    [{ $case: "scale", value: { namespace: "shop", name: "api", replicas: 1 } }],
    /^suppositions\[0\]\.scale: there is no container service "api"/,
  ],
  [
    "too many replicas",
    [{ $case: "scale", value: { namespace: "shop", name: "web", replicas: 10_001 } }],
    /scale\.replicas: must be at most 10000/,
  ],
  [
    "any one node among others",
    [
      { $case: "loseAnyNode", value: true },
      { $case: "loseNode", value: "n1" },
    ],
    /lose_any_node is tried out alone/,
  ],
] as const satisfies readonly (readonly [string, readonly Change[], RegExp])[]) {
  test(`refuses ${what} with its path`, async (t) => {
    const fleet = await aFleet(t, [node("n1")], [web(1)]);
    await assert.rejects(fleet.whatIf(...changes), (error) => {
      assert.ok(error instanceof CoordinatorError);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("returns how many pods fit, what runs out first, and the loss by fragmentation", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2"), node("n3")], []);
  const found = await fleet.capacity({ $case: "requests", value: { amounts: { cpu: "1500m" } } });
  assert.equal(found.pods, 3n);
  assert.equal(found.podsIfPooled, 4n);
  assert.equal(found.runsOutFirst, "cpu");
  assert.match(found.why, /insufficient cpu/);
  assert.deepEqual(found.nodes, [
    { node: "n1", pods: 1 },
    { node: "n2", pods: 1 },
    { node: "n3", pods: 1 },
  ]);
});

test("counts existing pods in the capacity for a workload", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2")], [web(3)]);
  const like = { namespace: "shop", kind: "container_service", name: "web" };
  const found = await fleet.capacity({ $case: "like", value: like });
  assert.equal(found.pods, 5n);
  assert.equal(found.requests.cpu, "500m");
});

test("computes the capacity for a workload without pods from its template", async (t) => {
  const fleet = await aFleet(t, [node("n1"), node("n2")], [web(0)]);
  const like = { namespace: "shop", kind: "container_service", name: "web" };
  const found = await fleet.capacity({ $case: "like", value: like });
  assert.deepEqual([found.pods, found.requests.cpu], [8n, "500m"]);
});

test("refuses requests that can't be counted", async (t) => {
  const fleet = await aFleet(t, [node("n1")], []);
  await assert.rejects(fleet.capacity(undefined), /requests: at least one resource/);
  await assert.rejects(
    fleet.capacity({ $case: "requests", value: { amounts: { cpu: "much" } } }),
    /requests\[cpu\]/,
  );
  const like = { namespace: "shop", kind: "container_service", name: "web" };
  await assert.rejects(fleet.capacity({ $case: "like", value: like }), /has no pods/);
});

function web(replicas: number): ForageResource {
  const resources = { requests: { cpu: "500m", memory: "64Mi" }, limits: undefined };
  const container = { name: "main", image: "registry.example/team/app:v1", resources };
  return aContainerService("web", { scaling: { replicas }, container });
}

function podsOf(counts: WorkloadOutcome["left"]): number {
  return counts.reduce((sum, { pods }) => sum + pods, 0);
}
