import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const CHANGE = { name: "n1", setTaints: [], removeTaints: [], setLabels: {}, removeLabels: [] };
const taint = (effect: string, value = "") => ({ key: "example.com/broken", value, effect });

test(
  "moves pods away from a node with a NoExecute taint, and back when the taint is removed",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const operator = world.operator();
    await HollowAgent.start(world, { name: "n1" });
    await apply(world, {});
    await HollowAgent.start(world, { name: "n2" });
    const { node } = await operator.updateNode({ ...CHANGE, setTaints: [taint("NoExecute", "yes")] });
    assert.deepEqual(node?.taints, [taint("NoExecute", "yes")]);
    await until("all pods are on n2", async () => (await nodesOf(world)).join() === "n2,n2");
    await operator.updateNode({ ...CHANGE, removeTaints: [taint("")] });
    await operator.updateNode({ ...CHANGE, name: "n2", setTaints: [taint("NoExecute")] });
    await until("all pods are on n1", async () => (await nodesOf(world)).join() === "n1,n1");
  },
);

test("keeps a pod for its toleration_seconds, and then stops it", LIMIT, async (t) => {
  // With a shorter interval, the coordinator would treat the skipped hour as a time in which it did
  // not run.
  const world = await startWorld(t, {}, { heartbeatIntervalSeconds: 7_200 });
  await HollowAgent.start(world);
  const toleration = { key: "example.com/broken", operator: "Exists", effect: "NoExecute" };
  await apply(world, { podConfig: { tolerations: [{ ...toleration, tolerationSeconds: 3600n }] } });
  const before = await uidsOf(world);
  await world.operator().updateNode({ ...CHANGE, setTaints: [taint("NoExecute")] });
  await world.operator().updateNode({ ...CHANGE, setTaints: [taint("NoExecute")] });
  assert.deepEqual(await uidsOf(world), before);
  await until("its time is waited for", () => world.clock.pending((delayMs) => delayMs > 3_000_000));
  world.clock.skip(3_600_000);
  await until("other pods are there", async () =>
    (await uidsOf(world)).every((uid) => !before.includes(uid)),
  );
});

test("keeps the pods of a cordoned node, and adds no more", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await apply(world, {});
  const { node } = await world.operator().updateNode({ ...CHANGE, unschedulable: true });
  assert.equal(node?.unschedulable, true);
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest("a2", [aContainerService("web"), aContainerService("more")]));
  const lines = await watchToEnd(world, rolloutId);
  assert.ok(
    lines.some((line) => /more FAILED .*unschedulable/.test(line)),
    lines.join("\n"),
  );
  assert.equal(agent.assignments.size, 2);
  assert.equal(
    (await world.operator().updateNode({ ...CHANGE, unschedulable: false })).node?.unschedulable,
    false,
  );
});

test("refuses invalid taints, and unknown nodes", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const operator = world.operator();
  for (const request of [
    { ...CHANGE, setTaints: [taint("")] },
    { ...CHANGE, setTaints: [taint("NoSuchEffect")] },
    { ...CHANGE, setTaints: [taint("NoSchedule"), taint("NoSchedule", "again")] },
    { ...CHANGE, setTaints: [{ ...taint("NoSchedule"), key: "no key" }] },
    { ...CHANGE, name: "" },
  ])
    await assert.rejects(operator.updateNode(request), { code: status.INVALID_ARGUMENT });
  await assert.rejects(operator.updateNode({ ...CHANGE, name: "n9" }), { code: status.NOT_FOUND });
});

async function apply(world: World, spec: object): Promise<void> {
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web", spec)]));
  const lines = await watchToEnd(world, rolloutId);
  assert.match(lines.at(-1) ?? "", /SUCCEEDED/, lines.join("\n"));
}

async function running(world: World) {
  const filter = { namespace: "shop", labels: {}, workload: "web", node: "", name: "" };
  const { pods } = await world.operator().listPods(filter);
  return pods.filter((pod) => !pod.stopping);
}

async function nodesOf(world: World): Promise<string[]> {
  return (await running(world)).map(({ node }) => node).sort();
}

async function uidsOf(world: World): Promise<string[]> {
  return (await running(world)).map(({ uid }) => uid).sort();
}
