import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const NODES = {
  unreachableSeconds: 1.5,
  startGraceSeconds: 60,
  unreachableTolerationSeconds: 1,
  recoveryGraceSeconds: 1,
  notReadyTolerationSeconds: 300,
};
const QUICK = { heartbeatIntervalSeconds: 0.5, nodes: NODES };

test("replaces the pods of a lost node, and stops them when it returns", LIMIT, async (t) => {
  const { world, agents } = await aFleet(t, ["n1", "n2", "n3"]);
  await apply(world, "a1", aContainerService("web", { scaling: { replicas: 6 } }));
  const lost = agents[0] as HollowAgent;
  const there = [...lost.assignments.keys()];
  assert.ok(there.length > 0, "it has pods");
  lost.close();
  await until("the node is unreachable", async () => (await nodeOf(world, "n1")).unreachable);
  const node = await nodeOf(world, "n1");
  assert.equal(node.ready, false);
  assert.equal(node.message, "its connection was lost");
  assert.ok(node.notReadySince !== undefined);
  await until("all replicas are ready elsewhere", async () => {
    const pods = await podsOf(world);
    return pods.length === 6 && pods.every((pod) => pod.node !== "n1" && pod.status?.ready);
  });
  assert.deepEqual(
    (await nodeOf(world, "n1")).conditionTaints.map(({ key, effect }) => `${key}:${effect}`),
    ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"],
  );
  const back = lost.again({ pods: [...lost.assignments.values()].map((pod) => lost.running(pod)) });
  await until("it has got rid of what it had", async () => {
    const { pods } = await world.operator().listPods(EVERYTHING);
    return pods.every(({ uid }) => !there.includes(uid));
  });
  assert.deepEqual(
    [...back.assignments.values()].filter((pod) => !pod.stopping),
    [],
  );
  assert.equal((await podsOf(world)).length, 6);
  assert.equal((await nodeOf(world, "n1")).ready, true);
  assert.deepEqual((await nodeOf(world, "n1")).conditionTaints, []);
});

test("keeps pods with claims, pinned pods and tolerating pods on a lost node", LIMIT, async (t) => {
  const { world, agents } = await aFleet(t, ["n1", "n2", "n3"]);
  await world.operator().putObject(
    PutObjectRequest.fromPartial({
      namespace: "shop",
      object: { namespace: "shop", name: "data", spec: { $case: "claim", value: {} } },
    } as object),
  );
  const one = { scaling: { replicas: 1 } };
  const volumes = [{ name: "v", source: { $case: "pvc", value: { claimName: "data" } } }];
  const nodeSelector = { "kubernetes.io/hostname": "n1" };
  const toleration = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };
  const tolerations = [{ ...toleration, tolerationSeconds: 3600n }];
  await apply(world, "a1", aContainerService("pinned", { ...one, podConfig: { nodeSelector } }));
  await apply(world, "a2", aContainerService("db", { ...one, volumes, podConfig: { nodeSelector } }));
  for (const name of ["n2", "n3"])
    await world.operator().updateNode({
      name,
      unschedulable: true,
      setTaints: [],
      removeTaints: [],
      setLabels: {},
      removeLabels: [],
    });
  await apply(world, "a3", aContainerService("data", { ...one, volumes }));
  await apply(world, "a4", aContainerService("patient", { ...one, podConfig: { tolerations } }));
  await apply(world, "a5", aContainerService("web", one));
  for (const name of ["n2", "n3"])
    await world.operator().updateNode({
      name,
      unschedulable: false,
      setTaints: [],
      removeTaints: [],
      setLabels: {},
      removeLabels: [],
    });
  agents[0]?.close();
  await until("the one that may go has gone", async () =>
    (await podsOf(world)).some(({ workloadName, node }) => workloadName === "web" && node !== "n1"),
  );
  const where = new Map((await podsOf(world)).map((pod) => [pod.workloadName, pod.node]));
  for (const name of ["pinned", "db", "data", "patient"]) assert.equal(where.get(name), "n1", name);
  await until("its time is waited for", () => world.clock.pending((delayMs) => delayMs > 3_500_000));
});

test(
  "replaces no pod when most nodes are lost at once, until enough nodes have returned",
  LIMIT,
  async (t) => {
    const { world, agents } = await aFleet(t, ["n1", "n2", "n3", "n4"]);
    await apply(world, "a1", aContainerService("web", { scaling: { replicas: 8 } }));
    const before = (await podsOf(world)).map(({ uid }) => uid).sort();
    for (const agent of agents.slice(0, 3)) agent.close();
    await until("they are unreachable", async () => {
      const { nodes: all } = await world.operator().listNodes({});
      return all.filter(({ unreachable }) => unreachable).length === 3;
    });
    await until("evictions were held back", async () => (await eventsOf(world)).includes("EvictionPaused"));
    assert.deepEqual((await podsOf(world)).map(({ uid }) => uid).sort(), before);
    agents[1]?.again();
    agents[2]?.again();
    await until("those of the one that stays away are replaced", async () => {
      const pods = await podsOf(world);
      return pods.length === 8 && pods.every((pod) => pod.node !== "n1" && pod.status?.ready);
    });
  },
);

test("moves pods from a node that reports that it can't run them, after a while", LIMIT, async (t) => {
  const { world, agents } = await aFleet(t, ["n1", "n2"], { notReadyTolerationSeconds: 1 });
  await apply(world, "a1", aContainerService("web", { scaling: { replicas: 4 } }));
  const [broken] = agents;
  const allocatable = { cpu: "4", memory: "8Gi", pods: "110" };
  const conditions = [{ type: "RuntimeReady", status: false, reason: "Gone", message: "no answer" }];
  broken?.say({ $case: "nodeReport", value: NodeReport.fromPartial({ allocatable, conditions }) });
  await until("all replicas are ready elsewhere", async () => {
    const pods = await podsOf(world);
    return pods.length === 4 && pods.every((pod) => pod.node === "n2" && pod.status?.ready);
  });
  const node = await nodeOf(world, "n1");
  assert.deepEqual([node.ready, node.unreachable, node.message], [false, false, "RuntimeReady: no answer"]);
  assert.ok(node.notReadySince !== undefined);
  broken?.say({ $case: "nodeReport", value: NodeReport.fromPartial({ allocatable }) });
  await until("it is healthy again", async () => {
    const { ready, notReadySince } = await nodeOf(world, "n1");
    return ready && notReadySince === undefined;
  });
});

test("keeps a loss across a restart of the coordinator", LIMIT, async (t) => {
  const { world, agents } = await aFleet(t, ["n1", "n2"]);
  const toleration = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };
  const tolerations = [{ ...toleration, tolerationSeconds: 3600n }];
  await apply(
    world,
    "a1",
    aContainerService("web", { scaling: { replicas: 4 }, podConfig: { tolerations } }),
  );
  agents[0]?.close();
  await until("the loss is on record", async () => (await nodeOf(world, "n1")).conditionTaints.length === 2);
  const { notReadySince } = await nodeOf(world, "n1");
  agents[1]?.close();
  await world.restart();
  const node = await nodeOf(world, "n1");
  assert.equal(node.unreachable, true);
  assert.equal(node.message, "it has not connected since the coordinator started");
  assert.deepEqual(node.notReadySince, notReadySince);
  assert.equal((await nodeOf(world, "n2")).ready, true, "the others stay ready");
  agents[0]?.again();
  agents[1]?.again();
  await until("it is back", async () => (await nodeOf(world, "n1")).ready);
});

const EVERYTHING = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };

async function aFleet(
  t: Parameters<typeof startWorld>[0],
  names: readonly string[],
  limits: Partial<typeof NODES> = {},
) {
  const world = await startWorld(t, {}, { ...QUICK, nodes: { ...NODES, ...limits } });
  const agents: HollowAgent[] = [];
  for (const name of names) agents.push(await HollowAgent.start(world, { name }));
  await until("they are connected", async () => {
    const { nodes: all } = await world.operator().listNodes({});
    return all.length === names.length && all.every(({ ready }) => ready);
  });
  return { world, agents };
}

async function apply(world: World, applyId: string, ...resources: Parameters<typeof aRequest>[1]) {
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, resources));
  const lines = await watchToEnd(world, rolloutId);
  assert.match(lines.at(-1) ?? "", /SUCCEEDED/, lines.join("\n"));
}

/** Returns the pods that are not stopping. */
async function podsOf(world: World) {
  const { pods } = await world.operator().listPods(EVERYTHING);
  return pods.filter(({ stopping }) => !stopping);
}

async function nodeOf(world: World, name: string) {
  const { nodes: all } = await world.operator().listNodes({});
  const node = all.find((it) => it.name === name);
  assert.ok(node);
  return node;
}

async function eventsOf(world: World): Promise<string[]> {
  const { events } = await world
    .operator()
    .listEvents({ namespace: "", filter: undefined, after: 0n, limit: 0 });
  return events.map(({ reason }) => reason);
}
