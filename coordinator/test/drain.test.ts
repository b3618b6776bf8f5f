import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DrainNodeRequest,
  PutObjectRequest,
  type WatchDrainResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { Fleet } from "./support/fleet.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";

const LIMIT = { timeout: 120_000 };

test("stops a drained node's only replica once another one is ready elsewhere", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  await fleet.apply(aContainerService("web", { scaling: { replicas: 1 } }));
  const other = await fleet.join("n2");
  // The node's new pods become ready when the test releases them.
  const ready = holdBack(other);
  const { node } = await drain(fleet, "n1");
  assert.equal(node?.unschedulable, true);
  assert.equal(node?.drain?.state, "draining");
  await until("another is made", async () => (await fleet.pods()).length === 2);
  await until("it is on n2", () => other.assignments.size === 1);
  const [old] = (await fleet.pods()).filter((pod) => pod.node === "n1");
  assert.equal(old?.draining, "drain");
  assert.equal(old?.status?.ready, true, "the old one serves on");
  const [waiting] = (await statusOf(fleet, "n1")).waiting;
  assert.match(
    waiting?.why ?? "",
    /0 of 1 other replicas that web needs are ready; web-.* is not ready yet on n2/,
  );
  ready();
  await until("it is drained", async () => (await fleet.node("n1")).drain?.state === "drained");
  assert.deepEqual(
    (await fleet.allPods()).map((pod) => pod.node),
    ["n2"],
  );
  await until("the event is published", async () => {
    const reasons = await fleet.reasons();
    return reasons.includes("DrainStarted") && reasons.includes("DrainFinished");
  });
});

test("predicts with whatif the nodes to which a drain moves pods", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, []);
  for (const [name, cpu] of Object.entries({ n1: "4", n2: "2", n3: "3", n4: "3" }))
    fleet.agents.set(name, await HollowAgent.start(fleet.world, { name, cpu }));
  await fleet.ready([...fleet.agents.keys()]);
  const resources = { requests: { cpu: "500m" } };
  const container = { name: "main", image: "app:1", resources };
  await fleet.apply(aContainerService("web", { scaling: { replicas: 9 }, container }));
  const places = await podsByNode(fleet);
  const [busiest = ""] = [...places.keys()].sort((x, y) => (places.get(y) ?? 0) - (places.get(x) ?? 0));
  const supposition = { $case: "drainNode", value: busiest } as const;
  const { workloads } = await fleet.operator.whatIf({ suppositions: [{ supposition }] });
  assert.equal(workloads.length, 1);
  for (const { left, came } of workloads) {
    for (const { node, pods } of left) places.set(node, (places.get(node) ?? 0) - pods);
    for (const { node, pods } of came) places.set(node, (places.get(node) ?? 0) + pods);
  }
  assert.equal(places.get(busiest), 0);
  places.delete(busiest);
  await drain(fleet, busiest);
  await until("it is drained", async () => (await fleet.node(busiest)).drain?.state === "drained");
  assert.deepEqual([...(await podsByNode(fleet))].sort(), [...places].sort());
});

test("never stops more pods than a budget allows, regardless of the node's pods", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  const annotations = { "forage.dev/disruption-budget": "25%" };
  await fleet.apply(aContainerService("web", { scaling: { replicas: 8 }, podConfig: { annotations } }));
  const other = await fleet.join("n2");
  const least = fleet.watchLeast();
  const stream = collected(fleet.operator.watchDrain({ name: "n1" }));
  stream.catch(() => {});
  await drain(fleet, "n1");
  await until("it is drained", async () => (await fleet.node("n1")).drain?.state === "drained");
  assert.ok((await least()) >= 6, "two of eight may be missing");
  assert.equal(other.assignments.size, 8);
});

test("keeps and lists pods that fit no other node, unless they are included", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  const object = { namespace: "shop", name: "data", spec: { $case: "claim", value: {} } };
  await fleet.operator.putObject(PutObjectRequest.fromPartial({ namespace: "shop", object } as object));
  const volumes = [{ name: "v", source: { $case: "pvc", value: { claimName: "data" } } }];
  await fleet.apply(aContainerService("db", { scaling: { replicas: 1 }, volumes }), aContainerService("web"));
  await fleet.join("n2");
  await drain(fleet, "n1");
  await until("it is drained", async () => (await fleet.node("n1")).drain?.state === "drained");
  const { staying, waiting } = await statusOf(fleet, "n1");
  assert.deepEqual(waiting, []);
  assert.match(
    staying.map(({ name, why }) => `${name}: ${why}`).join(),
    /^db-\S+: its claim "data" is on n1$/,
  );
  assert.equal((await fleet.pods("db")).length, 1);
  await drain(fleet, "n1", { includeClaims: true });
  await until("nothing of it is left on n1", async () =>
    (await fleet.allPods()).every((pod) => pod.node !== "n1"),
  );
  await fleet.cordon("n1", false);
  await until("it is back where its claim lies", async () =>
    (await fleet.pods("db")).some((pod) => pod.node === "n1" && pod.status?.ready),
  );
});

test("lets pods of jobs finish, and stops them by force", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  const container = { name: "main", image: "app:v1" };
  const job = ForageResource.fromPartial({
    name: "sum",
    spec: {
      $case: "job",
      value: { container, completions: 1, parallelism: 1, podConfig: { restartPolicy: "Never" } },
    },
  } as object);
  const request = { applyId: "j1", namespace: "shop", resources: [job], labels: {} };
  await fleet.world.forage().applyResources(request);
  await until("it runs", async () => (await fleet.pods("sum")).some((pod) => pod.status?.ready));
  await drain(fleet, "n1");
  await until("it is waited for", async () =>
    (await statusOf(fleet, "n1")).waiting.some(({ why }) => /its job is not complete/.test(why)),
  );
  await drain(fleet, "n1", { force: true });
  await until("it is drained", async () => (await fleet.node("n1")).drain?.state === "drained");
});

test(
  "continues a drain after a restart of the coordinator, and ends it with an uncordon",
  LIMIT,
  async (t) => {
    const fleet = await Fleet.start(t, ["n1"]);
    await fleet.apply(aContainerService("web", { scaling: { replicas: 3 } }));
    const other = await fleet.join("n2");
    const ready = holdBack(other);
    await drain(fleet, "n1");
    await until("some wait for others", async () => (await fleet.pods()).some((pod) => pod.draining !== ""));
    await fleet.restart();
    assert.equal((await fleet.node("n1")).drain?.state, "draining");
    for (const agent of [other, fleet.agent("n2")]) agent.behaviour = (pod) => agent.running(pod);
    ready();
    for (const pod of fleet.agent("n2").assignments.values())
      if (!pod.stopping) fleet.agent("n2").report(fleet.agent("n2").running(pod));
    await until("it is drained", async () => (await fleet.node("n1")).drain?.state === "drained");
    assert.deepEqual([...new Set((await fleet.pods()).map((pod) => pod.node))], ["n2"]);
    await fleet.cordon("n1", false);
    assert.equal((await fleet.node("n1")).drain, undefined);
  },
);

test("keeps the pods in place after a cancelled drain, without extra replicas", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  await fleet.apply(aContainerService("web", { scaling: { replicas: 2 } }));
  await drain(fleet, "n1", { timeoutSeconds: 3600 });
  await until("one waits for another", async () => (await fleet.pods()).length > 2);
  await fleet.cordon("n1", false);
  await until("all is as before", async () => {
    const pods = await fleet.allPods();
    return pods.length === 2 && pods.every((pod) => pod.draining === "" && pod.status?.ready);
  });
  await assert.rejects(collected(fleet.operator.watchDrain({ name: "n1" })), {
    code: status.FAILED_PRECONDITION,
  });
});

test("ends a drain that times out, and lists the remaining pods", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"]);
  await fleet.apply(aContainerService("web", { scaling: { replicas: 1 } }));
  await drain(fleet, "n1", { timeoutSeconds: 1 });
  const [last] = (await collected(fleet.operator.watchDrain({ name: "n1" }))).slice(-1);
  assert.equal(last?.drain?.state, "failed");
  assert.match(last?.drain?.message ?? "", /the deadline passed with 1 pods left: web-/);
  await until("the pod stays", async () => {
    const pods = await fleet.allPods();
    return pods.length === 1 && pods[0]?.draining === "" && pods[0].node === "n1";
  });
  assert.equal((await fleet.node("n1")).unschedulable, true);
});

/** Returns the number of pods on each node that has any. */
async function podsByNode(fleet: Fleet): Promise<Map<string, number>> {
  const places = new Map<string, number>();
  for (const { node } of await fleet.pods()) places.set(node, (places.get(node) ?? 0) + 1);
  return places;
}

function drain(fleet: Fleet, name: string, request: Partial<DrainNodeRequest> = {}) {
  return fleet.operator.drainNode(DrainNodeRequest.fromPartial({ name, ...request }));
}

async function statusOf(fleet: Fleet, name: string): Promise<WatchDrainResponse> {
  const call = fleet.operator.watchDrain({ name });
  call.on("error", () => {});
  for await (const response of call) {
    call.cancel();
    return response;
  }
  throw new Error("the stream held nothing");
}

/** Keeps the agent's pods from becoming ready until the returned function is called. */
function holdBack(agent: HollowAgent): () => void {
  agent.behaviour = () => undefined;
  return () => {
    agent.behaviour = (pod) => agent.running(pod);
    for (const pod of agent.assignments.values()) if (!pod.stopping) agent.report(agent.running(pod));
  };
}
