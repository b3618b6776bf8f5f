import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const NODES = {
  unreachableSeconds: 1.5,
  startGraceSeconds: 60,
  unreachableTolerationSeconds: 300,
  recoveryGraceSeconds: 1,
  notReadyTolerationSeconds: 300,
};

test("lists nodes and pods with their usage while their node is connected", LIMIT, async (t) => {
  const world = await startWorld(t, {}, { heartbeatIntervalSeconds: 0.5, nodes: NODES });
  const agent = await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await until("the usage of all pods is requested", () => agent.measuresAllPods);
  assert.deepEqual(agent.metricsRequests, [], "no pod is autoscaled");
  assert.equal((await podOf(world))?.usage, undefined);
  agent.hostUsage = { cpuMilli: 1_250n, memoryBytes: 4_096n, pods: 1 };
  agent.measureAny = () => ({ memoryBytes: 2_048n });
  await until("the pod has memory", async () => (await podOf(world))?.usage?.memoryBytes === 2_048n);
  assert.equal((await podOf(world))?.usage?.cpuMilli, undefined, "its CPU takes another sample");
  agent.measureAny = () => ({ memoryBytes: 2_048n, cpuNanoCores: 250_400_000n });
  await until("the pod has CPU", async () => (await podOf(world))?.usage?.cpuMilli === 250n);
  await until("the node has values", async () =>
    isDeepStrictEqual((await nodeOf(world))?.usage, { cpuMilli: 1_250n, memoryBytes: 4_096n }),
  );
  agent.close();
  await until("values of a lost node are out of date", async () => {
    const [node, pod] = [await nodeOf(world), await podOf(world)];
    return node?.unreachable === true && node.usage === undefined && pod?.usage === undefined;
  });
});

async function nodeOf(world: World) {
  const { nodes } = await world.operator().listNodes({});
  return nodes[0];
}

async function podOf(world: World) {
  const request = { namespace: "shop", labels: {}, workload: "", node: "n1", name: "" };
  const { pods } = await world.operator().listPods(request);
  return pods[0];
}
