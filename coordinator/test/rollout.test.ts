import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { status } from "@grpc/grpc-js";
import { HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aService, watchToEnd } from "./support/requests.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
/** Settings for pods that wait a long time for their node to join. */
const PATIENT = { progressDeadlineSeconds: 60, placementDeadlineSeconds: 60, stableSeconds: 0 };

test("runs an applied bundle, and sends every watcher the same final state", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const request = aRequest("a1", [aContainerService("web"), aService("web", "web")]);
  const { rolloutId } = await world.forage().applyResources(request);
  const [first, second] = await Promise.all([watchToEnd(world, rolloutId), watchToEnd(world, rolloutId)]);
  for (const lines of [first, second]) {
    assert.ok(lines.includes("container_service/web SUCCEEDED 2/2 ready"), lines.join("\n"));
    assert.ok(lines.some((line) => line.startsWith("service/web SUCCEEDED")));
  }
  const late = await watchToEnd(world, rolloutId);
  assert.equal(late.length, 2, "a late watcher gets one final state for each resource");
  assert.equal(agent.assignments.size, 2);
});

test("answers NOT_FOUND for an unknown rollout", LIMIT, async (t) => {
  const world = await startWorld(t);
  await assert.rejects(watchToEnd(world, "r-nothing"), { code: status.NOT_FOUND });
});

test("fails the rollout of a pod that no node accepts, with the reason", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { cpu: "500m" });
  const container = { name: "main", image: "app:v1", resources: { requests: { cpu: "2", memory: "64Mi" } } };
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest("a1", [aContainerService("big", { container })]));
  const lines = await watchToEnd(world, rolloutId);
  assert.match(lines.at(-1) ?? "", /FAILED .*0\/1 nodes: 1 insufficient cpu/);
  const rollout = await world.operator().getRollout({ by: { $case: "rolloutId", value: rolloutId } });
  assert.equal(rollout.resources[0]?.reason, "unschedulable");
  assert.notEqual(rollout.resources[0]?.finishedAt, undefined);
  assert.match(rollout.resources[0]?.now ?? "", /^0\/\d ready$/);
});

test(
  "fails the rollout of a container that keeps crashing, with its exit code and last lines",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    await HollowAgent.start(world, {
      behaviour: (pod) => waitingPod(pod, "CrashLoopBackOff", "restarting in 10 s", 2, 3),
    });
    const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
    const lines = await watchToEnd(world, rolloutId);
    assert.match(lines.at(-1) ?? "", /FAILED .*exited with code 3.*last words/);
  },
);

test("fails the rollout of an image that does not exist", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, {
    behaviour: (pod) => waitingPod(pod, "ErrImageNotFound", "registry.example/team/app:v1: not found"),
  });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /FAILED .*app:v1: not found/);
});

test("sends watchers the progress of an image pull", LIMIT, async (t) => {
  const world = await startWorld(t, {}, { rollout: PATIENT });
  const steps = [1, 2].map((layers) => `pulling app:v1: ${layers} of 3 layers, ${20 * layers} of 80 MiB`);
  const pulling = (pod: PodAssignment) => waitingPod(pod, "ImagePull", steps[0] ?? "");
  const agent = await HollowAgent.start(world, { behaviour: pulling });
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest("a1", [aContainerService("web", { scaling: { replicas: 1 } })]));
  const heard: string[] = [];
  for await (const { message } of world.forage().watchRollout({ rolloutId })) {
    const [, step] = /ImagePull: (.*) \(on node n1\)$/.exec(message) ?? [];
    if (step === undefined) continue;
    heard.push(step);
    const next = steps[heard.length];
    for (const pod of agent.assignments.values()) {
      agent.report(next === undefined ? agent.running(pod) : waitingPod(pod, "ImagePull", next));
    }
  }
  assert.deepEqual(heard, steps);
});

test(
  "returns the same rollout for an equal apply with the same apply_id, and ALREADY_EXISTS for a different one",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const request = aRequest("a1", [aContainerService("web")]);
    const first = await world.forage().applyResources(request);
    assert.deepEqual(await world.forage().applyResources(request), first);
    const other = aRequest("a1", [aContainerService("api")]);
    await assert.rejects(world.forage().applyResources(other), { code: status.ALREADY_EXISTS });
  },
);

test("keeps the pods of an unchanged resource, and rolls those of a changed one", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const web = aContainerService("web");
  await watchToEnd(world, (await world.forage().applyResources(aRequest("a1", [web]))).rolloutId);
  const before = [...agent.assignments.keys()].sort();
  const unchanged = await world.forage().applyResources(aRequest("a2", [web]));
  assert.deepEqual(await watchToEnd(world, unchanged.rolloutId), [
    "container_service/web SUCCEEDED 2/2 ready",
  ]);
  assert.deepEqual([...agent.assignments.keys()].sort(), before);

  const container = { name: "main", image: "registry.example/team/app:v2" };
  const changed = await world
    .forage()
    .applyResources(aRequest("a3", [aContainerService("web", { container })]));
  const lines = await watchToEnd(world, changed.rolloutId);
  assert.match(lines.at(-1) ?? "", /SUCCEEDED 2\/2 ready/);
  const { pods } = await world
    .operator()
    .listPods({ namespace: "shop", labels: {}, workload: "web", node: "", name: "" });
  const running = pods.filter((pod) => !pod.stopping);
  assert.equal(running.length, 2);
  for (const pod of running) assert.ok(!before.includes(pod.uid));
});

test("removes resources with the labels that left the bundle, and keeps others", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const labels = { app: "shop" };
  const forage = world.forage();
  await watchToEnd(
    world,
    (
      await forage.applyResources(
        aRequest("a1", [aContainerService("web"), aContainerService("old")], labels),
      )
    ).rolloutId,
  );
  await watchToEnd(
    world,
    (await forage.applyResources(aRequest("a2", [aContainerService("other")]))).rolloutId,
  );
  const { rolloutId } = await forage.applyResources(aRequest("a3", [aContainerService("web")], labels));
  const lines = await watchToEnd(world, rolloutId);
  assert.ok(lines.includes("container_service/old SUCCEEDED removed"), lines.join("\n"));
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  assert.deepEqual(resources.map((r) => r.name).sort(), ["other", "web"]);
  assert.equal(agent.assignments.size, 4);
});

test("finishes the rollout after a restart, and keeps finished ones", LIMIT, async (t) => {
  const world = await startWorld(t, {}, { rollout: PATIENT });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await world.restart();
  const agent = await HollowAgent.start(world);
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
  agent.close();
  await world.restart();
  assert.deepEqual(await watchToEnd(world, rolloutId), ["container_service/web SUCCEEDED 2/2 ready"]);
});

test("removes nothing in an apply that keeps others", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const labels = { app: "shop" };
  const [web, front] = [aContainerService("web"), aService("web", "web")];
  await world.forage().applyResources(aRequest("a1", [web, front], labels));
  const bundle = aRequest("a2", [web], labels);
  const kept = { namespace: "shop", bundle, keepOthers: true, agreedRemovals: undefined };
  const { rolloutId } = await world.operator().apply(kept);
  assert.deepEqual(await watchToEnd(world, rolloutId), ["container_service/web SUCCEEDED 2/2 ready"]);
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  assert.deepEqual(resources.map(({ kind }) => kind).sort(), ["container_service", "service"]);
  assert.deepEqual(await world.operator().apply(kept), { rolloutId }, "the same apply id is the same apply");
  await assert.rejects(world.operator().apply({ ...kept, keepOthers: false }), {
    code: status.ALREADY_EXISTS,
  });
  await assert.rejects(world.operator().apply({ ...kept, namespace: "other" }), {
    code: status.INVALID_ARGUMENT,
  });
});

test("removes only resources to which the caller has agreed", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  const labels = { app: "shop" };
  const [web, front, late] = [aContainerService("web"), aService("web", "web"), aContainerService("late")];
  await world.forage().applyResources(aRequest("a1", [web, front, late], labels));
  const agreedTo = (...resources: (readonly [kind: string, name: string])[]) => ({
    ...{ namespace: "shop", bundle: aRequest("a2", [web], labels), keepOthers: false },
    agreedRemovals: { resources: resources.map(([kind, name]) => ({ namespace: "shop", kind, name })) },
  });
  for (const request of [agreedTo(), agreedTo(["service", "web"])]) {
    await assert.rejects(world.operator().apply(request), {
      code: status.FAILED_PRECONDITION,
      details:
        /would also remove .*container_service\/late, which were created .*nothing was applied: apply again/,
    });
  }
  const before = await world.operator().listResources({ namespace: "shop", labels: {} });
  assert.deepEqual(
    before.resources.filter(({ deleting }) => deleting),
    [],
  );
  const gone = ["job", "was-there"] as const;
  await world.operator().apply(agreedTo(["service", "web"], ["container_service", "late"], gone));
  const after = await world.operator().listResources({ namespace: "shop", labels: {} });
  assert.deepEqual(
    after.resources.filter(({ deleting }) => !deleting).map(({ name }) => name),
    ["web"],
  );
});

test("stops the pods of resources deleted by labels, even if this is repeated", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const labels = { app: "shop" };
  const applied = await world
    .forage()
    .applyResources(aRequest("a1", [aContainerService("web"), aService("web", "web")], labels));
  await watchToEnd(world, applied.rolloutId);
  for (let times = 0; times < 2; times++) await world.forage().deleteResources({ namespace: "shop", labels });
  while ((await world.operator().listResources({ namespace: "shop", labels: {} })).resources.length > 0) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(agent.assignments.size, 0);
  for (const request of [
    { namespace: "", labels },
    { namespace: "shop", labels: {} },
  ]) {
    await assert.rejects(world.forage().deleteResources(request), { code: status.INVALID_ARGUMENT });
  }
});
