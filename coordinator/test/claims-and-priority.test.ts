import assert from "node:assert/strict";
import { test } from "node:test";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { HollowAgent, removedPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const ONE = { scaling: { replicas: 1 } };
const CLAIM_REF = { namespace: "shop", kind: "claim", name: "data" };

test("places a claim with its first pod, and later pods on its node", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agents = new Map<string, HollowAgent>();
  for (const name of ["n1", "n2", "n3"]) agents.set(name, await HollowAgent.start(world, { name }));
  await put(world, "data", { $case: "claim", value: { capacity: "1Gi" } });
  await apply(world, "a1", aContainerService("db", { ...ONE, ...withClaim() }));
  const node = await claimNode(world);
  const [pod] = [...(agents.get(node)?.assignments.values() ?? [])];
  assert.deepEqual(pod?.claims, [{ name: "data", capacityBytes: 1_073_741_824n }]);
  // Without the claim, these five pods would spread over three nodes.
  await apply(world, "a2", aContainerService("readers", { scaling: { replicas: 5 }, ...withClaim() }));
  const { pods } = await world
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
  assert.deepEqual([...new Set(pods.map((it) => it.node))], [node]);
  await assert.rejects(put(world, "data", { $case: "claim", value: { capacity: "2Gi" } }), {
    code: status.INVALID_ARGUMENT,
    details: /claim\.capacity: can't be changed: the claim is on node/,
  });
});

test("places concurrent pods that share a new claim on one node", LIMIT, async (t) => {
  const world = await startWorld(t);
  for (const name of ["n1", "n2", "n3"]) await HollowAgent.start(world, { name });
  await put(world, "data", { $case: "claim", value: {} });
  await apply(world, "a1", aContainerService("db", { scaling: { replicas: 6 }, ...withClaim() }));
  const { pods } = await world
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
  assert.equal(pods.length, 6);
  assert.equal(new Set(pods.map((it) => it.node)).size, 1);
});

test("reports a missing claim of a pod, and places the pod when the claim is created", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [aContainerService("db", { ...ONE, ...withClaim() })]));
  await until("it says what it waits for", async () => {
    const { pods } = await world
      .operator()
      .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
    return /waits for claim "data", which doesn't exist/.test(pods[0]?.unschedulable ?? "");
  });
  await put(world, "data", { $case: "claim", value: {} });
  await until("it is assigned", () => agent.assignments.size === 1);
});

test(
  "keeps a claim in use, and removes an unused one once its node has deleted the data",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    const stranger = await HollowAgent.start(world, { name: "n2", cpu: "0" });
    await put(world, "data", { $case: "claim", value: {} });
    await apply(world, "a1", aContainerService("db", { ...ONE, ...withClaim() }));
    await assert.rejects(world.operator().deleteObject(CLAIM_REF), {
      code: status.FAILED_PRECONDITION,
      details: /in use by shop\/container_service\/db, pod db-/,
    });
    await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
    await until("its pod is gone", async () => {
      const { pods } = await world
        .operator()
        .listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
      return pods.length === 0;
    });
    assert.deepEqual(await world.operator().deleteObject(CLAIM_REF), { pending: true });
    await until("the node is ordered to remove the claim", () => agent.claimRemovals.length > 0);
    assert.deepEqual(agent.claimRemovals, [{ namespace: "shop", name: "data" }]);
    await assert.rejects(put(world, "data", { $case: "claim", value: {} }), {
      code: status.FAILED_PRECONDITION,
    });
    const again = agent.again();
    await until("the order is repeated when the node reconnects", () => again.claimRemovals.length === 1);
    const claims = [{ namespace: "shop", name: "data" }];
    const done = { $case: "claimsRemoved" as const, value: { claims } };
    stranger.say(done);
    stranger.say({
      $case: "heartbeat",
      value: { assignmentRevision: 0n, usage: undefined, answerRequested: false },
    });
    await world.operator().listNodes({});
    assert.equal(
      (await world.operator().getObject(CLAIM_REF)).object?.name,
      "data",
      "another node's word doesn't count",
    );
    again.say(done);
    await until("the claim is gone", () =>
      world
        .operator()
        .getObject(CLAIM_REF)
        .then(
          () => false,
          () => true,
        ),
    );
  },
);

test("preempts less important pods for an important one, and stops them gracefully", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { cpu: "1" });
  await put(world, "high", { $case: "priorityClass", value: { value: 1_000 } }, "");
  await apply(world, "a1", aContainerService("low", { scaling: { replicas: 3 }, container: asking("300m") }));
  // The pods take some time to stop.
  const behaviour = agent.behaviour;
  const stopping: string[] = [];
  agent.onStopping = (pod) => {
    stopping.push(pod.name);
    return undefined;
  };
  const podConfig = { priorityClassName: "high" };
  const { rolloutId } = await world
    .forage()
    .applyResources(
      aRequest("a2", [aContainerService("vip", { ...ONE, container: asking("500m"), podConfig })]),
    );
  await until("two are asked to stop", () => stopping.length === 2);
  await until("the important one says what it waits for", async () => {
    const { pods } = await world
      .operator()
      .listPods({ namespace: "shop", labels: {}, workload: "vip", node: "", name: "" });
    return /waits for room on node n1: less important pods are being stopped/.test(
      pods[0]?.unschedulable ?? "",
    );
  });
  const { pods } = await world
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "low", node: "", name: "" });
  assert.equal(pods.filter((pod) => pod.stopping).length, 2, "no more than it takes");
  agent.behaviour = behaviour;
  agent.onStopping = removedPod;
  for (const pod of [...agent.assignments.values()].filter((it) => it.stopping))
    agent.report(removedPod(pod));
  const lines = await watchToEnd(world, rolloutId);
  assert.match(lines.at(-1) ?? "", /vip SUCCEEDED/);
  const left = [...agent.assignments.values()].map(({ workloadName }) => workloadName).sort();
  assert.deepEqual(left, ["low", "vip"]);
});

test(
  "lets a pod of a class that never preempts wait, and preempts nothing for a pod without a class",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world, { cpu: "1" });
    await put(world, "polite", { $case: "priorityClass", value: { value: 1_000, neverPreempts: true } }, "");
    await apply(world, "a1", aContainerService("low", { ...ONE, container: asking("900m") }));
    const podConfig = { priorityClassName: "polite" };
    const lines = await watchToEnd(
      world,
      (
        await world
          .forage()
          .applyResources(
            aRequest("a2", [aContainerService("vip", { ...ONE, container: asking("500m"), podConfig })]),
          )
      ).rolloutId,
    );
    assert.match(lines.at(-1) ?? "", /insufficient cpu/);
    assert.deepEqual(
      [...agent.assignments.values()].map((it) => [it.workloadName, it.stopping]),
      [["low", false]],
    );
  },
);

test("refuses a missing class by its path, and always has the built-in ones", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const named = (priorityClassName: string) => aContainerService("web", { podConfig: { priorityClassName } });
  await assert.rejects(world.forage().applyResources(aRequest("a1", [named("high")])), {
    code: status.INVALID_ARGUMENT,
    details:
      /resources\[0\]\.container_service\.pod_config\.priority_class_name: there is no priority class "high"/,
  });
  await apply(world, "a2", named("system-node-critical"));
  const { objects } = await world
    .operator()
    .listObjects({ namespace: "", kind: "priority_class", labels: {} });
  assert.deepEqual(objects.map(({ name }) => name).sort(), [
    "system-cluster-critical",
    "system-node-critical",
  ]);
});

test("allows one default class, for all pods that name none", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { cpu: "1" });
  await put(world, "low", { $case: "priorityClass", value: { value: -10 } }, "");
  const podConfig = { priorityClassName: "low" };
  await apply(world, "a1", aContainerService("low", { ...ONE, container: asking("900m"), podConfig }));
  await put(world, "usual", { $case: "priorityClass", value: { value: 10, globalDefault: true } }, "");
  await assert.rejects(
    put(world, "other", { $case: "priorityClass", value: { value: 1, globalDefault: true } }, ""),
    {
      details: /priority_class\.global_default: is set on priority class "usual" already/,
    },
  );
  await world
    .forage()
    .applyResources(aRequest("a2", [aContainerService("web", { ...ONE, container: asking("900m") })]));
  await until("it has taken the place", () =>
    [...agent.assignments.values()].some(({ workloadName, stopping }) => workloadName === "web" && !stopping),
  );
});

function withClaim() {
  return { volumes: [{ name: "v", source: { $case: "pvc", value: { claimName: "data" } } }] };
}

function asking(cpu: string) {
  return { name: "main", image: "app:v1", resources: { requests: { cpu } } };
}

async function claimNode(world: World): Promise<string> {
  const { object } = await world.operator().getObject(CLAIM_REF);
  return object?.spec?.$case === "claim" ? object.spec.value.node : "";
}

async function apply(
  world: World,
  applyId: string,
  ...resources: Parameters<typeof aRequest>[1]
): Promise<void> {
  const lines = await watchToEnd(
    world,
    (await world.forage().applyResources(aRequest(applyId, resources))).rolloutId,
  );
  assert.match(lines.at(-1) ?? "", /SUCCEEDED/);
}

async function put(world: World, name: string, spec: object, namespace = "shop"): Promise<void> {
  await world
    .operator()
    .putObject(PutObjectRequest.fromPartial({ namespace, object: { namespace, name, spec } } as object));
}
