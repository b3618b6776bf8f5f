import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeReport, PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { type ServiceError, status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
/**
 * Settings with a long interval, so that a test can skip time without making every stream count as
 * silent.
 */
const CALM = { heartbeatIntervalSeconds: 60 };

test("ignores a node's reports about another node's pods", LIMIT, async (t) => {
  const world = await startWorld(t);
  const honest = await HollowAgent.start(world, { name: "n1" });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const liar = await HollowAgent.start(world, { name: "n2" });
  const pods = [...honest.assignments.values()];
  liar.report(
    ...pods.map((pod) =>
      PodStatus.fromPartial({ ...honest.running(pod), ready: false, phase: PodPhase.FAILED }),
    ),
    ...pods.map((pod) => PodStatus.fromPartial({ uid: pod.uid, phase: PodPhase.REMOVED })),
  );
  const { rolloutId: second } = await world
    .forage()
    .applyResources(aRequest("a2", [aContainerService("api")]));
  await watchToEnd(world, second);
  const after = await podsOf(world, "web");
  assert.deepEqual(
    after.map(({ uid, status: s }) => [uid, s?.ready]).sort(),
    pods.map(({ uid }) => [uid, true]).sort(),
  );
});

test("prefers the newer of two sessions of one node, and sends it everything", LIMIT, async (t) => {
  const world = await startWorld(t);
  const first = await HollowAgent.start(world);
  await watchToEnd(
    world,
    (await world.forage().applyResources(aRequest("a1", [aContainerService("web")]))).rolloutId,
  );
  const second = first.again();
  await until("the older session is ended", () => first.ended !== undefined);
  assertEnded(first, status.ABORTED, /newer session/);
  await until("the newer one has all pods", () => second.assignments.size === 2);
  const [node] = (await world.operator().listNodes({})).nodes;
  assert.equal(node?.ready, true, "the end of the older one changes nothing");
});

test("refuses an impossible report of a node with its field", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { cpu: "lots" });
  await until("its stream is ended", () => agent.ended !== undefined);
  assertEnded(agent, status.INVALID_ARGUMENT, /node\.allocatable\[cpu\]: "lots" is not a quantity/);
  const other = await HollowAgent.start(world, { name: "n2" });
  other.say({ $case: "nodeReport", value: NodeReport.fromPartial({ allocatable: { memory: "-1" } }) });
  await until("the second report is refused, too", () => other.ended !== undefined);
});

test("publishes ports to which services lead even if no container declares them", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const container = { name: "main", image: "registry.example/team/app:v1" };
  const web = aContainerService("web", { container, scaling: { replicas: 1 } });
  const labels = { bundle: "shop" };
  const apply = async (id: string, ...ports: readonly number[]) => {
    const listed = ports.map((port) => ({ name: `p${port}`, port }));
    const spec = { $case: "service", value: { target: "web", ports: listed } };
    const service = ForageResource.fromPartial({ name: "front", spec } as object);
    const { rolloutId } = await world.forage().applyResources(aRequest(id, [web, service], labels));
    return (await watchToEnd(world, rolloutId)).filter((line) => line.includes("service/front SUCCEEDED"));
  };
  assert.deepEqual(await apply("a1", 9090), ["service/front SUCCEEDED 1 endpoint ready"]);
  const [pod] = agent.assignments.values();
  assert.deepEqual(pod?.servicePorts, [{ name: "", containerPort: 9090, protocol: "TCP" }]);
  await apply("a2", 9091, 9092);
  await until("the running pod's assignment changes", () => {
    const [{ uid = "", servicePorts = [] } = {}] = agent.assignments.values();
    return uid === pod?.uid && servicePorts.map((it) => it.containerPort).join() === "9091,9092";
  });
  await until("both ports have endpoints", async () => {
    const { endpoints } = await world.operator().listEndpoints({ namespace: "shop", service: "front" });
    return endpoints.map((it) => it.servicePort).join() === "9091,9092";
  });
  await world.forage().applyResources(aRequest("a3", [web], labels));
  await until("nothing is published any more", () => {
    return [...agent.assignments.values()].every(({ servicePorts }) => servicePorts.length === 0);
  });
});

test("requires hello exactly once, at the start of a stream", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await until("it is connected", async () => (await world.operator().listNodes({})).nodes[0]?.ready ?? false);
  const node = NodeReport.fromPartial({});
  const value = {
    agentVersion: "",
    bootId: "",
    sessionId: "",
    clusterId: "",
    assignmentRevision: 0n,
    node,
    pods: [],
  };
  agent.say({ $case: "hello", value });
  await until("it is ended", () => agent.ended !== undefined);
  assertEnded(agent, status.INVALID_ARGUMENT, /hello may be sent only once/);
});

test("keeps a silent node ready for exactly the grace period", LIMIT, async (t) => {
  const tolerant = {
    startGraceSeconds: 0,
    unreachableTolerationSeconds: 3_600,
    recoveryGraceSeconds: 1,
    notReadyTolerationSeconds: 0,
  };
  const world = await startWorld(t, {}, { nodes: { ...tolerant, unreachableSeconds: 2 } });
  const agent = await HollowAgent.start(world);
  await watchToEnd(
    world,
    (await world.forage().applyResources(aRequest("a1", [aContainerService("web")]))).rolloutId,
  );
  agent.close();
  const ready = async (): Promise<boolean> => (await world.operator().listNodes({})).nodes[0]?.ready ?? false;
  assert.equal(await ready(), true);
  await until("the node is unreachable", async () => !(await ready()));
  assert.ok((await podsOf(world, "web")).every(({ nodeLost }) => nodeLost));
  agent.again();
  await until("it is back", ready);
  assert.ok((await podsOf(world, "web")).every(({ nodeLost, status: s }) => !nodeLost && s?.ready));
});

test("ends a stream without heartbeats", LIMIT, async (t) => {
  const world = await startWorld(t, {}, CALM);
  const agent = await HollowAgent.start(world, { heartbeats: false });
  await until("it is connected", async () => (await world.operator().listNodes({})).nodes[0]?.ready ?? false);
  // The steps are so short that the coordinator does not treat them as a stall of its own.
  for (let step = 0; step < 8; step++) world.clock.skip(30_000);
  await until("it is ended", () => agent.ended !== undefined);
  assertEnded(agent, status.ABORTED, /no heartbeats/);
});

test(
  "sends pods again to an agent that lost them, and lets an agent remove a leftover pod",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world);
    await watchToEnd(
      world,
      (await world.forage().applyResources(aRequest("a1", [aContainerService("web")]))).rolloutId,
    );
    const [pod] = [...agent.assignments.values()];
    assert.ok(pod);
    agent.close();
    await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
    await until("the pods are to stop", async () =>
      (await podsOf(world, "web")).every(({ stopping }) => stopping),
    );
    const empty = agent.again({ pods: [] });
    await until("pods it doesn't know are gone", async () => (await podsOf(world, "web")).length === 0);
    assert.equal(empty.assignments.size, 0);
  },
);

function assertEnded({ ended }: HollowAgent, code: status, details: RegExp): void {
  const error = ended as ServiceError | undefined;
  assert.equal(error?.code, code);
  assert.match(error?.details ?? "", details);
}

async function podsOf(world: World, workload: string) {
  const request = { namespace: "shop", labels: {}, workload, node: "", name: "" };
  return (await world.operator().listPods(request)).pods;
}
