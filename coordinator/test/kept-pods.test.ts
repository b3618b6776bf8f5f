import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { ListPodsResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { PREFIXES } from "../src/model/keys.ts";
import { toEpochMs } from "../src/model/timestamp.ts";
import { HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const HOUR_MS = 60 * 60 * 1000;

test("keeps a failed pod and its status after a rollback, separately from running pods", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { stopped } = await rolledBack(world);
  const { pods, kept } = await list(world);
  assert.equal(pods.length, 2);
  const [failed] = kept;
  assert.ok(failed);
  assert.deepEqual([failed.status?.phase, failed.stopping, failed.nodeLost], [PodPhase.FAILED, false, false]);
  assert.equal(failed.status?.containers[0]?.lastTermination?.exitCode, 3);
  assert.equal(failed.stopReason, "an older revision");
  const keptForMs = toEpochMs(failed.keptUntil ?? { seconds: 0n, nanos: 0 }) - world.clock.nowMs();
  assert.ok(keptForMs > HOUR_MS - 60_000 && keptForMs <= HOUR_MS, `${keptForMs}`);
  assert.equal(stopped.get(failed.name), 3600, "the agent keeps the logs for as long");
  const named = await list(world, failed.uid.slice(0, 8));
  assert.equal(named.kept[0]?.template?.container?.image, "app:bad");

  const why = await world.operator().why({ namespace: "shop", kind: "pod", name: failed.name });
  assert.match(why.summary, /^pod web-\S+ failed and was stopped: .*exited with code 3/);
  assert.match(why.causes.at(-1)?.message ?? "", /its logs are kept for 60 min more/);
  const service = await world.operator().why({ namespace: "shop", kind: "container_service", name: "web" });
  const details = service.causes.find(({ reason }) => reason === "RolledBack")?.details ?? [];
  assert.deepEqual(details, [`the failed pod's logs: forage logs ${failed.name} -n shop`]);
});

test("reads logs of a kept pod from its node, and refuses other sessions in it", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { agent } = await rolledBack(world);
  const [failed] = (await list(world)).kept;
  assert.ok(failed);
  const target = { namespace: "shop", pod: failed.name, container: "" };
  const reading = collected(world.operator().logs({ ...target, options: undefined }));
  const session = await sessionOf(agent);
  assert.deepEqual([session.podUid, session.container], [failed.uid, "main"]);
  const stream = agent.client.serve();
  stream.on("error", () => {});
  stream.write({ frame: { $case: "sessionId", value: session.sessionId } });
  stream.write({ frame: { $case: "stdout", value: Buffer.from("why it failed\n") } });
  stream.write({ frame: { $case: "end", value: { exitCode: 0, error: "" } } });
  stream.end();
  assert.equal(Buffer.concat((await reading).map(({ data }) => data)).toString(), "why it failed\n");

  const exec = world.operator().exec();
  exec.write({
    frame: {
      $case: "start",
      value: { ...target, options: { command: ["true"], stdin: false, tty: false, size: undefined } },
    },
  });
  await assert.rejects(collected(exec), {
    code: status.FAILED_PRECONDITION,
    details: /failed and was stopped: only its logs .* `forage logs web-\S+ -n shop`/,
  });
});

test(
  "removes a kept pod at the next rollout of its workload, even after a restart of the coordinator",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    let { agent } = await rolledBack(world);
    const { behaviour } = agent;
    agent.close();
    await world.restart();
    agent = agent.again({ name: agent.name, behaviour });
    assert.equal((await list(world)).kept.length, 1);
    await apply(world, "a3", "app:v3");
    await until("nothing is kept", async () => (await storedKept(world)).length === 0);
    assert.equal((await list(world)).kept.length, 0);
  },
);

test("removes a kept pod after an hour", LIMIT, async (t) => {
  const world = await startWorld(t);
  await rolledBack(world);
  world.clock.skip(HOUR_MS - 60_000);
  assert.equal((await list(world)).kept.length, 1);
  world.clock.skip(60_000);
  assert.equal((await list(world)).kept.length, 0);
  await until("its record is gone", async () => (await storedKept(world)).length === 0);
});

test("removes a kept pod with its workload", LIMIT, async (t) => {
  const world = await startWorld(t);
  await rolledBack(world);
  const ref = { namespace: "shop", kind: "container_service", name: "web" };
  await world.operator().delete({ namespace: "shop", resources: [ref], labels: {}, all: false });
  await until("nothing is kept", async () => (await storedKept(world)).length === 0);
});

interface RolledBack {
  readonly agent: HollowAgent;
  /** The number of seconds for which the agent keeps the logs of each stopped pod. */
  readonly stopped: ReadonlyMap<string, number>;
}

/**
 * Returns the agent of a world in which `web` was rolled back from app:bad to app:v1, and no pod of
 * app:bad runs.
 */
async function rolledBack(world: World, replicas = 2): Promise<RolledBack> {
  const agent: HollowAgent = await HollowAgent.start(world, {
    behaviour: (pod) =>
      imageOf(pod) === "app:bad"
        ? waitingPod(pod, "CrashLoopBackOff", "starts again in 10 s", 2, 3)
        : agent.running(pod),
  });
  const stopped = new Map<string, number>();
  const { onStopping } = agent;
  agent.onStopping = (pod) => {
    stopped.set(pod.name, pod.keepLogsSeconds);
    return onStopping(pod);
  };
  await apply(world, "a1", "app:v1", replicas);
  await apply(world, "a2", "app:bad", replicas);
  await until("the failed pods are gone", () => agent.assignments.size === replicas);
  await until("failed pods are kept", async () => (await list(world)).kept.length > 0);
  return { agent, stopped };
}

async function apply(world: World, applyId: string, image: string, replicas = 2): Promise<void> {
  const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: "100%", maxUnavailable: "0" } };
  const service = aContainerService("web", {
    container: { name: "main", image },
    scaling: { replicas },
    updateStrategy: strategy,
  });
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, [service]));
  await watchToEnd(world, rolloutId);
}

function list(world: World, name = ""): Promise<ListPodsResponse> {
  return world.operator().listPods({ namespace: "shop", labels: {}, workload: "", node: "", name });
}

async function storedKept(world: World): Promise<readonly unknown[]> {
  return (await world.store.range(PREFIXES.keptPods)).records;
}

async function sessionOf(agent: HollowAgent): Promise<SessionRequest> {
  await until("the agent is asked", () => agent.sessions.length > 0);
  const session = agent.sessions.shift();
  assert.ok(session);
  return session;
}

function imageOf(pod: PodAssignment): string {
  return pod.template?.container?.image ?? "";
}
