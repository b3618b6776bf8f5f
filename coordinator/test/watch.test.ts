import assert from "node:assert/strict";
import { test } from "node:test";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, aService, describeEvent, watchToEnd } from "./support/requests.ts";
import { collected, settled, until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const PATIENT = { rollout: { progressDeadlineSeconds: 60, placementDeadlineSeconds: 60, stableSeconds: 0 } };

test(
  "sends a watcher first every resource, then each change, and then the end of the stream",
  LIMIT,
  async (t) => {
    const world = await startWorld(t, {}, PATIENT);
    const { rolloutId } = await world
      .forage()
      .applyResources(
        aRequest("a1", [aContainerService("web"), aService("web", "web"), aContainerService("api")]),
      );
    const stream = world.forage().watchRollout({ rolloutId });
    const events = stream[Symbol.asyncIterator]();
    const first = [];
    for (let count = 0; count < 3; count++) first.push((await events.next()).value);
    assert.deepEqual(
      first.map((event) => `${event?.resourceKind}/${event?.resourceName}`),
      ["container_service/web", "service/web", "container_service/api"],
    );
    assert.equal(first[0]?.status, RolloutStatus.PENDING);
    await HollowAgent.start(world);
    const rest = [];
    for (let next = await events.next(); !next.done; next = await events.next())
      rest.push(describeEvent(next.value));
    assert.ok(rest.includes("container_service/web SUCCEEDED 2/2 ready"), rest.join("\n"));
    assert.ok(rest.includes("service/web SUCCEEDED 2 endpoints ready"), rest.join("\n"));
    assert.ok(!rest.some((line) => /service\/web SUCCEEDED [01] endpoint/.test(line)), rest.join("\n"));
    assert.ok(rest.includes("container_service/api SUCCEEDED 2/2 ready"), rest.join("\n"));
  },
);

test("sends all watchers the same final state, whenever they connected", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const early = watchToEnd(world, rolloutId);
  const agent = await HollowAgent.start(world, { behaviour: () => undefined });
  await until("the pods are assigned", () => agent.assignments.size === 2);
  const midway = watchToEnd(world, rolloutId);
  agent.behaviour = (pod) => agent.running(pod);
  agent.report(...[...agent.assignments.values()].map((pod) => agent.running(pod)));
  const ends = await Promise.all([early, midway]);
  const late = await watchToEnd(world, rolloutId);
  assert.deepEqual(late, ["container_service/web SUCCEEDED 2/2 ready"]);
  for (const lines of ends) assert.equal(lines.at(-1), late[0]);
});

test("sends a stalled watcher the newest state, and delays no other", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const agent = await HollowAgent.start(world, { behaviour: () => undefined });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await until("the pods are assigned", () => agent.assignments.size === 2);
  const stalled = world.forage().watchRollout({ rolloutId });
  const reading = stalled[Symbol.asyncIterator]();
  await reading.next();
  const attentive = world.forage().watchRollout({ rolloutId });
  const pods = [...agent.assignments.values()];
  const changes = 400;
  let seen = 0;
  let last = "";
  attentive.on("data", (event) => {
    seen++;
    last = describeEvent(event);
  });
  for (let change = 0; change < changes; change++) {
    const message = `${change} ${"x".repeat(2_000)}`;
    agent.report(...pods.map((pod) => waitingPod(pod, "ImagePull", message)));
    await until("the attentive subscriber has the change", () => last.includes(` ${change} x`));
  }
  agent.report(...pods.map((pod) => agent.running(pod)));
  await until("the attentive subscriber has the end", () => last.endsWith("2/2 ready"));
  const rest = [];
  for (let next = await reading.next(); !next.done; next = await reading.next())
    rest.push(describeEvent(next.value));
  assert.equal(rest.at(-1), "container_service/web SUCCEEDED 2/2 ready");
  assert.ok(seen >= changes && rest.length < changes / 2, `${rest.length} of ${seen} events`);
});

test("is not affected by a watcher that disconnects, and by hundreds that stay", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const forage = world.forage();
  for (let count = 0; count < 20; count++) {
    const gone = forage.watchRollout({ rolloutId });
    gone.on("error", () => {});
    for await (const _ of gone) break;
    gone.cancel();
  }
  const watching = Array.from({ length: 200 }, () => collected(forage.watchRollout({ rolloutId })));
  await settled();
  await HollowAgent.start(world);
  for (const events of await Promise.all(watching))
    assert.equal(
      describeEvent(events.at(-1) ?? assert.fail("nothing")),
      "container_service/web SUCCEEDED 2/2 ready",
    );
});

test("ends a rollout that another one replaces with a clear message", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const first = await world
    .forage()
    .applyResources(aRequest("a1", [aContainerService("web"), aService("web", "web")]));
  const watching = watchToEnd(world, first.rolloutId);
  const container = { name: "main", image: "registry.example/team/app:v2" };
  const second = await world
    .forage()
    .applyResources(aRequest("a2", [aContainerService("web", { container })]));
  const lines = await watching;
  assert.ok(
    lines.includes(`container_service/web FAILED superseded by rollout ${second.rolloutId}`),
    lines.join("\n"),
  );
  await HollowAgent.start(world);
  assert.equal(
    (await watchToEnd(world, second.rolloutId)).at(-1),
    "container_service/web SUCCEEDED 2/2 ready",
  );
  const again = await watchToEnd(world, first.rolloutId);
  assert.match(again[0] ?? "", /FAILED superseded/, "it stays as it ended");
  const newest = {
    by: { $case: "resource", value: { namespace: "shop", kind: "container_service", name: "web" } },
  } as const;
  assert.equal((await world.operator().getRollout(newest)).rolloutId, second.rolloutId);
  await world.restart();
  assert.equal((await world.operator().getRollout(newest)).rolloutId, second.rolloutId);
});

test("ends a rollout whose resource is deleted", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const { rolloutId } = await world
    .forage()
    .applyResources(aRequest("a1", [aContainerService("web")], { app: "x" }));
  const watching = watchToEnd(world, rolloutId);
  await world.forage().deleteResources({ namespace: "shop", labels: { app: "x" } });
  assert.match((await watching).at(-1) ?? "", /FAILED was deleted by a later request/);
});

test("fails a rollout at its deadline", LIMIT, async (t) => {
  const world = await startWorld(t, {}, { ...PATIENT, heartbeatIntervalSeconds: 60 });
  const agent = await HollowAgent.start(world, {
    behaviour: (pod) => waitingPod(pod, "ImagePull", "12 of 40 MB"),
  });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const watching = watchToEnd(world, rolloutId);
  await until("the pods are assigned", () => agent.assignments.size === 2);
  await until("it is in progress", async () => {
    const { resources } = await world.operator().getRollout({ by: { $case: "rolloutId", value: rolloutId } });
    return /12 of 40 MB/.test(resources[0]?.message ?? "");
  });
  world.clock.skip(60_000);
  assert.match(
    (await watching).at(-1) ?? "",
    /FAILED 0\/2 ready; no progress for 60 s, the progress deadline; 2 ImagePull: 12 of 40 MB/,
  );
});

test("ends streams with OK when the coordinator stops, and continues at the next one", LIMIT, async (t) => {
  const world = await startWorld(t, {}, PATIENT);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const stream = world.forage().watchRollout({ rolloutId });
  const ended = new Promise<{ code: status }>((resolve) => stream.on("status", resolve));
  const reading = collected(stream);
  await until(
    "the stream is open",
    async () =>
      (await world.operator().listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" }))
        .pods.length === 2,
  );
  await world.restart();
  await reading;
  assert.equal((await ended).code, status.OK);
  await HollowAgent.start(world);
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
});
