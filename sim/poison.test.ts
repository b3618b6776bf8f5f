import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import {
  DrainNodeRequest,
  ListApiTokensResponse,
  ListEventsRequest,
  ListEventsResponse,
  ListNodesResponse,
  ListObjectsRequest,
  ListObjectsResponse,
  ListPodsRequest,
  ListPodsResponse,
  ListResourcesRequest,
  ListResourcesResponse,
  UpdateNodeRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest, type ForageResource } from "@forage/proto/forest/v1/forage";
import { drainNode } from "../coordinator/src/api/operator/drain-node.ts";
import { operatorService } from "../coordinator/src/api/operator/service.ts";
import { updateNode } from "../coordinator/src/api/operator/update-node.ts";
import { serviceAddressKey } from "../coordinator/src/model/keys.ts";
import { whatIsOpen } from "./fleet/convergence.ts";
import type { NodeOptions } from "./fleet/fleet-node.ts";
import { poisons } from "./fleet/poisons.ts";
import { imageOf } from "./fleet/programs.ts";
import { NAMESPACE } from "./fleet/script.ts";
import { clientContext, makeSecrets } from "./fleet/sim-coordinator.ts";
import { simTime } from "./fleet/sim-time.ts";
import { Trace } from "./fleet/trace.ts";
import { World } from "./fleet/world.ts";
import { RealNode } from "./real-node.ts";

const secrets = await makeSecrets();
const makeNode = (options: NodeOptions) => new RealNode(options);
/** This is longer than every deadline and back-off of valid objects. */
const CONVERGENCE_MS = 10 * 60_000;

for (const [what, opsOn] of Object.entries(poisons)) {
  test(`one invalid object stops nothing else: ${what}`, async (t) => {
    const { world, converges, apply, operate } = start();
    t.after(() => world.end());
    apply(1);
    await converges("before");
    const [node] = world.nodes;
    assert.ok(node);
    world.poison(what, opsOn(node.name));
    apply(2);
    await converges("once it is stored");
    // Reads of the store take simulated time.
    const [listed] = await Promise.allSettled([
      listEverything(world),
      world.time.runUntil(world.time.nowMs() + 5_000),
    ]);
    assert.equal(listed.status, "fulfilled", listed.status === "rejected" ? listed.reason : "");
    await operate(node.name);
    await converges("after nodes were tainted and drained");
    world.coordinator.die();
    const { stopped } = await secrets.reseal(world.durable);
    assert.equal(stopped, undefined, "no record ends the start's encryption");
    await converges("after a restart");
    apply(3);
    node.crash();
    world.lost = node;
    await converges("after a node was lost");
  });
}

function start() {
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 30 });
  const world = new World({ time, random: randomOf(1), trace, secrets, makeNode });
  const converges = async (when: string): Promise<void> => {
    const untilMs = time.nowMs() + CONVERGENCE_MS;
    await time.runUntil(time.nowMs() + 2_000, () => world.violation !== undefined);
    while (world.violation === undefined && lacking(world) !== undefined && time.nowMs() < untilMs)
      await time.runUntil(time.nowMs() + 2_000, () => world.violation !== undefined);
    const open = world.violation?.message ?? lacking(world);
    if (open !== undefined) assert.fail(`${when}: ${open}\n${trace.last().join("\n")}`);
  };
  const apply = (version: number): void => {
    const resources = soundResources(version);
    world.clients.apply(
      "sound",
      ApplyResourcesRequest.fromPartial({ applyId: `apply-${version}`, namespace: NAMESPACE, resources }),
    );
  };
  const operate = async (name: string): Promise<void> => {
    const taint = { key: "gone", value: "", effect: "NoExecute" };
    const change = (fields: Parameters<typeof UpdateNodeRequest.fromPartial>[0]) =>
      world.clients.call(name, "update", ({ core }) =>
        updateNode(UpdateNodeRequest.fromPartial({ name, ...fields }), core.services.operator),
      );
    change({ setTaints: [taint] });
    await time.runUntil(time.nowMs() + 5_000);
    change({ removeTaints: [taint] });
    world.clients.call(name, "drain", ({ core }) =>
      drainNode(DrainNodeRequest.fromPartial({ name }), core.services.operator),
    );
    await time.runUntil(time.nowMs() + 30_000);
    assert.equal(world.rules.state.podsOnNode(name).length, 0, "the drain of the sound pods has ended");
    change({ unschedulable: false });
  };
  return { world, converges, apply, operate };
}

/** Checks that lists over all namespaces include the valid objects despite the invalid ones. */
async function listEverything({ coordinator }: World): Promise<void> {
  const service = operatorService(coordinator.core.services.operator);
  const context = clientContext(coordinator.life);
  const { pods, kept } = await service.listPods(ListPodsRequest.fromPartial({}), context);
  assert.equal(pods.filter((pod) => pod.workloadName === "app").length, 3);
  ListPodsResponse.encode({ pods, kept }).finish();
  const { resources } = await service.listResources(ListResourcesRequest.fromPartial({}), context);
  assert.ok(resources.length >= 4);
  ListResourcesResponse.encode({ resources }).finish();
  const { nodes } = await service.listNodes({}, context);
  assert.ok(nodes.length >= 3);
  ListNodesResponse.encode({ nodes }).finish();
  const { objects } = await service.listObjects(ListObjectsRequest.fromPartial({}), context);
  ListObjectsResponse.encode({ objects }).finish();
  ListApiTokensResponse.encode(await service.listApiTokens({}, context)).finish();
  const events = await service.listEvents(ListEventsRequest.fromPartial({ namespace: NAMESPACE }), context);
  assert.ok(events.events.length > 0);
  ListEventsResponse.encode(events).finish();
}

function lacking(world: World): string | undefined {
  const open = whatIsOpen(world);
  if (open !== undefined) return open;
  const { state } = world.rules;
  const address = state.serviceAddresses.get(serviceAddressKey(NAMESPACE, "web"))?.record;
  if ((address?.virtualIps.length ?? 0) === 0) return "the service has no address";
  const { core } = world.coordinator;
  const trouble = core.services.operator.gateways.statusOf("route", NAMESPACE, "front");
  if (trouble === undefined) return "the route is not served";
  return undefined;
}

function soundResources(version: number): ForageResource[] {
  const container = (kind: "good" | "task") => ({
    name: "main",
    image: imageOf(kind, version),
    resources: { requests: { cpu: "100m", memory: "16Mi" } },
  });
  const jobConfig = { completions: 2, parallelism: 1 };
  return ApplyResourcesRequest.fromPartial({
    resources: [
      {
        name: "app",
        spec: {
          $case: "containerService",
          value: { scaling: { replicas: 3 }, container: container("good") },
        },
      },
      { name: `task-${version}`, spec: { $case: "job", value: { container: container("task"), jobConfig } } },
      {
        name: "web",
        spec: {
          $case: "service",
          value: { target: "app", ports: [{ name: "http", port: 80, targetPort: 8080 }] },
        },
      },
      {
        name: "front",
        spec: { $case: "route", value: { targetService: "web", hostnames: [`v${version}.example`] } },
      },
    ],
  }).resources;
}
