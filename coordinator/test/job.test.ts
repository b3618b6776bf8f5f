import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { endedPod, HollowAgent } from "./support/hollow-agent.ts";
import { aJob, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };

test("runs a job until its completions are reached, and ends its rollout", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world, { behaviour: (pod) => endedPod(pod, 0) });
  const job = aJob("migrate", { jobConfig: { completions: 3, parallelism: 2 } });
  assert.equal(await outcomeOf(world, "a1", job), "job/migrate SUCCEEDED 3/3 completed");
  assert.equal((await podsOf(world)).length, 3, "they stay, for their logs");
  assert.equal(
    await outcomeOf(world, "a2", job),
    "job/migrate SUCCEEDED 3/3 completed",
    "the same runs nothing",
  );
  assert.equal((await jobOf(world)).job?.succeeded, 3);
});

test("runs a changed job again after the former run has stopped", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aJob("migrate")]));
  await until("it runs", async () => (await jobOf(world)).job?.ready === 1);
  agent.onStopping = () => undefined;
  agent.behaviour = (pod) => endedPod(pod, 0);
  const changed = aJob("migrate", { container: { name: "main", image: "registry.example/team/app:v2" } });
  const second = await world.forage().applyResources(aRequest("a2", [changed]));
  const [superseded] = (await watchToEnd(world, rolloutId)).slice(-1);
  assert.equal(superseded, `job/migrate FAILED superseded by rollout ${second.rolloutId}`);
  await until("the old pod is ordered to stop", () =>
    [...agent.assignments.values()].some(({ stopping }) => stopping),
  );
  assert.equal(agent.assignments.size, 1, "and the new one waits");
  for (const pod of agent.assignments.values()) agent.report({ ...endedPod(pod, 0), phase: 6 });
  assert.equal((await watchToEnd(world, second.rolloutId)).at(-1), "job/migrate SUCCEEDED 1/1 completed");
});

test("passes indexes to the pods, and completes each once", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { behaviour: (pod) => endedPod(pod, 0) });
  const job = aJob("resize", { jobConfig: { completions: 3, parallelism: 3, completionMode: "Indexed" } });
  assert.equal(await outcomeOf(world, "a1", job), "job/resize SUCCEEDED 3/3 completed");
  const seen = [...agent.assignments.values()].map(({ hostname, labels, template }) => [
    hostname,
    labels["batch.kubernetes.io/job-completion-index"],
    template?.container?.env[0],
    template?.podConfig?.annotations["batch.kubernetes.io/job-completion-index"],
  ]);
  const expected = ["0", "1", "2"].map((index) => [
    `resize-${index}`,
    index,
    { name: "JOB_COMPLETION_INDEX", valueSource: { $case: "value", value: index } },
    index,
  ]);
  assert.deepEqual(seen.sort(), expected);
  assert.equal((await jobOf(world)).job?.completedIndexes, "0-2");
});

test("retries a failing job with growing delays up to its limit", LIMIT, async (t) => {
  const world = await startWorld(t);
  const options = { behaviour: (pod: PodAssignment) => endedPod(pod, 3, "no such table\n") };
  const agent = await HollowAgent.start(world, options);
  const job = aJob("migrate", { jobConfig: { backoffLimit: 1, restartPolicy: "Never" } });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [job]));
  await until("the first has failed", async () => (await jobOf(world)).job?.failed === 1);
  await until("the next waits", () => world.clock.pending((ms) => ms > 8_000 && ms <= 10_000));
  assert.equal(agent.assignments.size, 1);
  world.clock.skip(10_000);
  // The node has been unreachable for this time.
  agent.again();
  const [last] = (await watchToEnd(world, rolloutId)).slice(-1);
  assert.match(
    last ?? "",
    /^job\/migrate FAILED failed twice, with a limit of 1; pod migrate-\S+: container main exited with code 3 \(Error\); last lines: no such table$/,
  );
  const { job: state } = await jobOf(world);
  assert.deepEqual([state?.condition, state?.reason, state?.failed], ["Failed", "BackoffLimitExceeded", 2]);
  assert.equal(state?.lastFailure?.exitCode, 3);
});

test("removes a job after its time to live, with its pods", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { behaviour: (pod) => endedPod(pod, 0) });
  const job = aJob("migrate", { jobConfig: { ttlSecondsAfterFinished: 20n } });
  assert.equal(await outcomeOf(world, "a1", job), "job/migrate SUCCEEDED 1/1 completed");
  await until("its time is waited for", () => world.clock.pending((ms) => ms > 15_000 && ms <= 20_000));
  world.clock.skip(20_000);
  agent.again();
  await until(
    "it is gone",
    async () =>
      (await world.operator().listResources({ namespace: "shop", labels: {} })).resources.length === 0,
  );
  assert.deepEqual(await podsOf(world), []);
});

async function outcomeOf(
  world: World,
  applyId: string,
  job: ReturnType<typeof aJob>,
): Promise<string | undefined> {
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, [job]));
  return (await watchToEnd(world, rolloutId)).at(-1);
}

async function jobOf(world: World): Promise<Resource> {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  const found = resources.find(({ kind }) => kind === "job");
  assert.ok(found);
  return found;
}

async function podsOf(world: World) {
  const all = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
  return (await world.operator().listPods(all)).pods;
}
