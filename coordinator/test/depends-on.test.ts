import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { endedPod, HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aJob, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const after = (names: string, extra: object = {}) => ({
  podConfig: { annotations: { "forage.dev/depends-on": names } },
  ...extra,
});

test("starts a service once the job on which it depends is complete", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const bundle = [aJob("migrate"), aContainerService("web", after("job/migrate"))];
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", bundle));
  const lines: string[] = [];
  const watching = watchToEnd(world, rolloutId).then((all) => lines.push(...all));
  await until("the job runs", () => agent.assignments.size === 1);
  const message = () => messageOf(world, rolloutId, "web");
  await until(
    "the rollout shows the dependency",
    async () => (await message()) === "waits for job/migrate: 0 of 1 completed",
  );
  assert.deepEqual(kindsOn(agent), ["job"]);
  for (const pod of agent.assignments.values()) agent.report(endedPod(pod, 0));
  await watching;
  assert.ok(lines.includes("container_service/web SUCCEEDED 2/2 ready"), lines.join("\n"));
});

test("fails the rollout of a service that waits for a failed job, with the reason", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { behaviour: (pod) => endedPod(pod, 3, "no table\n") });
  const once = { podConfig: { annotations: { "forage.dev/backoff-limit": "0" } } };
  const bundle = [aContainerService("web", after("job/migrate")), aJob("migrate", once)];
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", bundle));
  const last = (await watchToEnd(world, rolloutId)).findLast((line) =>
    line.startsWith("container_service/web"),
  );
  assert.match(
    last ?? "",
    /^container_service\/web FAILED waits for job\/migrate: has failed: failed once, with a limit of 0/,
  );
});

test("keeps the running version until the new one, which waits, replaces it", LIMIT, async (t) => {
  const world = await startWorld(t);
  const isMigration = ({ workloadKind }: PodAssignment) => workloadKind === "job";
  const agent = await HollowAgent.start(world);
  agent.behaviour = (pod) => (isMigration(pod) ? endedPod(pod, 0) : agent.running(pod));
  const first = [aJob("migrate"), aContainerService("web", after("job/migrate"))];
  await watchToEnd(world, (await world.forage().applyResources(aRequest("a1", first))).rolloutId);
  const before = servicePods(agent);
  agent.behaviour = (pod) => agent.running(pod);
  const image = (version: string) => ({
    container: { name: "main", image: `registry.example/team/app:${version}` },
  });
  const second = [aJob("migrate", image("v2")), aContainerService("web", after("job/migrate", image("v2")))];
  const { rolloutId } = await world.forage().applyResources(aRequest("a2", second));
  await until("it waits", async () =>
    (await messageOf(world, rolloutId, "web")).startsWith("waits for job/migrate"),
  );
  await until("the new job runs", () => imagesOf(agent, "job").some((name) => name.endsWith(":v2")));
  assert.deepEqual(servicePods(agent), before);
  for (const pod of agent.assignments.values()) if (isMigration(pod)) agent.report(endedPod(pod, 0));
  await watchToEnd(world, rolloutId);
  assert.ok(imagesOf(agent, "container_service").every((name) => name.endsWith(":v2")));
});

test("refuses unknown and invalid names and cycles by their path", LIMIT, async (t) => {
  const world = await startWorld(t);
  for (const [resources, description] of [
    [
      [aContainerService("web", after("db"))],
      'there is no container_service/db in namespace "shop", nor in this request',
    ],
    [
      [aContainerService("web", after("Web!"))],
      '"Web!" must be the name of a container service, or job/NAME',
    ],
    [
      [aContainerService("web", after("web"))],
      "waits for itself: container_service/web → container_service/web",
    ],
    [
      [aContainerService("web", after("job/a")), aJob("a", after("web"))],
      "waits for itself: container_service/web → job/a → container_service/web",
    ],
  ] as const) {
    await assert.rejects(world.forage().applyResources(aRequest("a1", resources)), (error: Error) => {
      const path = "resources[0].container_service.pod_config.annotations[forage.dev/depends-on]";
      assert.ok(error.message.includes(path) && error.message.includes(description), error.message);
      return true;
    });
  }
});

function kindsOn(agent: HollowAgent): string[] {
  return [...agent.assignments.values()].map(({ workloadKind }) => workloadKind);
}

function servicePods(agent: HollowAgent): string[] {
  const pods = [...agent.assignments.values()].filter(
    ({ workloadKind }) => workloadKind === "container_service",
  );
  return pods.filter(({ stopping }) => !stopping).map(({ uid }) => uid);
}

function imagesOf(agent: HollowAgent, kind: string): string[] {
  const pods = [...agent.assignments.values()].filter((pod) => pod.workloadKind === kind && !pod.stopping);
  return pods.map(({ template }) => template?.container?.image ?? "");
}

async function messageOf(world: World, rolloutId: string, name: string): Promise<string> {
  const { resources } = await world.operator().getRollout({ by: { $case: "rolloutId", value: rolloutId } });
  return resources.find((resource) => resource.name === name)?.message ?? "";
}
