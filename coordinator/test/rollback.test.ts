import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { status } from "@grpc/grpc-js";
import { encodeRecord } from "../src/model/codec.ts";
import { objectVersionKey, revisionKey } from "../src/model/keys.ts";
import { type Behaviour, HollowAgent, waitingPod } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const SERVICE = { namespace: "shop", kind: "container_service", name: "web" };

/** Applies the behaviour to pods of the image. All other pods run. */
function behaving(agent: () => HollowAgent, image: string, behaviour: Behaviour): Behaviour {
  return (pod) => (imageOf(pod) === image ? behaviour(pod) : agent().running(pod));
}

function imageOf(pod: PodAssignment): string {
  return pod.template?.container?.image ?? "";
}

function web(image: string, overrides: object = {}) {
  return aContainerService("web", { container: { name: "main", image }, ...overrides });
}

async function apply(world: World, applyId: string, image: string, overrides: object = {}): Promise<string> {
  const { rolloutId } = await world.forage().applyResources(aRequest(applyId, [web(image, overrides)]));
  return rolloutId;
}

/** Starts app:v1 in a world in which app:bad crashes. */
async function start(world: World): Promise<HollowAgent> {
  const agent: HollowAgent = await HollowAgent.start(world, {
    behaviour: behaving(
      () => agent,
      "app:bad",
      (pod) => waitingPod(pod, "CrashLoopBackOff", "restarting in 10 s", 2, 3),
    ),
  });
  await watchToEnd(world, await apply(world, "a1", "app:v1"));
  return agent;
}

function update(world: World, $case: "undo" | "restart" | "pause" | "resume" | "promote", toRevision = 0) {
  const action =
    $case === "undo" ? ({ $case, value: { toRevision } } as const) : ({ $case, value: {} } as const);
  return world.operator().updateRollout({ ...SERVICE, action });
}

/** Returns the messages of a rollout until one matches. */
async function heard(world: World, rolloutId: string, pattern: RegExp): Promise<string> {
  for await (const { message } of world.forage().watchRollout({ rolloutId }))
    if (pattern.test(message)) return message;
  return assert.fail(`rollout ${rolloutId} ended without ${pattern}`);
}

async function imagesOf(world: World): Promise<string[]> {
  const all = { namespace: "shop", labels: {}, workload: "web", node: "", name: "" };
  const { pods } = await world.operator().listPods(all);
  const revisions = await world
    .operator()
    .listRevisions({ namespace: "shop", kind: "container_service", name: "web" });
  const imageByHash = new Map(
    revisions.revisions.map(({ templateHash, spec }) => {
      const value = spec?.spec?.$case === "containerService" ? spec.spec.value : undefined;
      return [templateHash, value?.container?.image ?? ""];
    }),
  );
  return pods.filter((pod) => !pod.stopping).map((pod) => imageByHash.get(pod.templateHash) ?? "?");
}

test("rolls back a version that crashes, with its exit code and last lines", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await start(world);
  const lines = await watchToEnd(world, await apply(world, "a2", "app:bad"));
  assert.match(lines.at(-1) ?? "", /ROLLED_BACK rolled back to revision 1: .*exited with code 3.*last words/);
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1"]);
  await until("the failed pods are gone", () => agent.assignments.size === 2);
  const { resources } = await world.operator().getRollout({ by: { $case: "resource", value: SERVICE } });
  assert.equal(resources[0]?.reason, "crash");
  const listed = await world.operator().listResources({ namespace: "shop", labels: {} });
  assert.match(listed.resources[0]?.message ?? "", /^rolled back to revision 1: .*exited with code 3/);
});

test("tries a rolled-back version again when it is applied again", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await start(world);
  await watchToEnd(world, await apply(world, "a2", "app:bad"));
  agent.behaviour = (pod) => agent.running(pod);
  const lines = await watchToEnd(world, await apply(world, "a3", "app:bad"));
  assert.match(lines.at(-1) ?? "", /SUCCEEDED 2\/2 ready/);
  assert.deepEqual(await imagesOf(world), ["app:bad", "app:bad"]);
});

test("continues a rollback after a restart of the coordinator", LIMIT, async (t) => {
  const world = await startWorld(t);
  let agent = await start(world);
  let restarts = 0;
  const rolloutId = await apply(world, "a2", "app:bad");
  for (; restarts < 3; restarts++) {
    const { behaviour } = agent;
    agent.close();
    await world.restart();
    agent = agent.again({ name: agent.name, behaviour });
    await until("something moved", async () => (await imagesOf(world)).length > 0);
  }
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /ROLLED_BACK .*exited with code 3/);
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1"]);
  await world.restart();
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /ROLLED_BACK .*exited with code 3/);
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1"]);
});

test("waits for a registry that is down, and reports it", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await start(world);
  const run = agent.behaviour;
  const why = "registry.example doesn't answer";
  agent.behaviour = behaving(
    () => agent,
    "app:v2",
    (pod) => waitingPod(pod, "ImagePullBackOff", why),
  );
  const rolloutId = await apply(world, "a2", "app:v2");
  assert.match(await heard(world, rolloutId, /ImagePullBackOff/), /registry.example doesn't answer/);
  agent.behaviour = run;
  for (const pod of agent.assignments.values()) agent.report(agent.running(pod));
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
});

test("undoes to the last good revision, and follows it", LIMIT, async (t) => {
  const world = await startWorld(t);
  await start(world);
  await watchToEnd(world, await apply(world, "a2", "app:v2", { scaling: { replicas: 3 } }));
  const { rolloutId, message } = await update(world, "undo");
  assert.equal(message, "undone to revision 1");
  assert.equal((await watchToEnd(world, rolloutId)).at(-1), "container_service/web SUCCEEDED 3/3 ready");
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1", "app:v1"]);
  const { revisions } = await world.operator().listRevisions(SERVICE);
  assert.deepEqual(
    revisions.map(({ number, good, inForce, pods }) => [number, good, inForce, pods]),
    [
      [3, true, true, 3],
      [2, true, false, 0],
    ],
  );
  await watchToEnd(world, (await update(world, "undo", 2)).rolloutId);
  assert.deepEqual(new Set(await imagesOf(world)), new Set(["app:v2"]));
  await assert.rejects(update(world, "undo", 1), { code: status.NOT_FOUND });
  await assert.rejects(update(world, "undo", 4), { code: status.FAILED_PRECONDITION });
});

test("ends a canary at once with an undo", LIMIT, async (t) => {
  const world = await startWorld(t);
  await start(world);
  const podConfig = { annotations: { "forage.dev/canary": "1" } };
  const canary = await apply(world, "a2", "app:v2", { podConfig });
  await heard(world, canary, /waits for a promotion after 1 pod of the new revision: forage rollout promote/);
  const { rolloutId } = await update(world, "undo");
  assert.match(
    (await watchToEnd(world, canary)).at(-1) ?? "",
    new RegExp(`superseded by rollout ${rolloutId}`),
  );
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1"]);
});

test("holds a canary until it is promoted", LIMIT, async (t) => {
  const world = await startWorld(t);
  await start(world);
  await assert.rejects(update(world, "promote"), { code: status.FAILED_PRECONDITION });
  const podConfig = { annotations: { "forage.dev/canary": "1" } };
  const rolloutId = await apply(world, "a2", "app:v2", { podConfig });
  await heard(world, rolloutId, /waits for a promotion/);
  assert.deepEqual((await imagesOf(world)).sort(), ["app:v1", "app:v2"]);
  assert.equal((await update(world, "promote")).rolloutId, rolloutId);
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
  assert.deepEqual(await imagesOf(world), ["app:v2", "app:v2"]);
});

test("holds applied changes during a pause until it is resumed", LIMIT, async (t) => {
  const world = await startWorld(t);
  await start(world);
  await assert.rejects(update(world, "resume"), { code: status.FAILED_PRECONDITION });
  await update(world, "pause");
  const rolloutId = await apply(world, "a2", "app:v2", { scaling: { replicas: 3 } });
  await heard(world, rolloutId, /paused until: forage rollout resume container_service\/web/);
  await until("it is scaled", async () => (await imagesOf(world)).length === 3);
  assert.deepEqual(await imagesOf(world), ["app:v1", "app:v1", "app:v1"]);
  await update(world, "resume");
  assert.match((await watchToEnd(world, rolloutId)).at(-1) ?? "", /SUCCEEDED/);
  assert.deepEqual(new Set(await imagesOf(world)), new Set(["app:v2"]));
});

test(
  "ends the former rollout with a clear message after a newer apply, and starts no pod twice",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const agent = await start(world);
    agent.behaviour = behaving(
      () => agent,
      "app:slow",
      (pod) => waitingPod(pod, "ContainerCreating", ""),
    );
    const slow = await apply(world, "a2", "app:slow");
    const watching = watchToEnd(world, slow);
    await heard(world, slow, /starting/);
    const next = await apply(world, "a3", "app:v3");
    assert.match((await watching).at(-1) ?? "", new RegExp(`FAILED superseded by rollout ${next}`));
    assert.match((await watchToEnd(world, next)).at(-1) ?? "", /SUCCEEDED 2\/2 ready/);
    assert.deepEqual(await imagesOf(world), ["app:v3", "app:v3"]);
    await until("nothing else is left", () => agent.assignments.size === 2);
  },
);

test("creates new pods once for a restart, and keeps them after an equal apply", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await start(world);
  const before = new Set(agent.assignments.keys());
  await watchToEnd(world, (await update(world, "restart")).rolloutId);
  await until("only new ones are left", () => agent.assignments.size === 2);
  const after = new Set(agent.assignments.keys());
  for (const uid of after) assert.ok(!before.has(uid));
  await watchToEnd(world, await apply(world, "a2", "app:v1"));
  assert.deepEqual(new Set(agent.assignments.keys()), after);
});

test("rolls back a secret that breaks the pods, and keeps its version", LIMIT, async (t) => {
  const world = await startWorld(t);
  const put = (value: string) => {
    const spec = { $case: "secret", value: { data: { key: Buffer.from(value) } } };
    const object = { namespace: "shop", name: "token", spec };
    return world.operator().putObject(PutObjectRequest.fromPartial({ namespace: "shop", object } as object));
  };
  await put("good");
  const env = [
    { name: "KEY", valueSource: { $case: "secretRef", value: { secretName: "token", key: "key" } } } as const,
  ];
  const container = { name: "main", image: "app:v1", env };
  const agent: HollowAgent = await HollowAgent.start(world);
  const version = (pod: PodAssignment) => pod.template?.objectVersions["secret/token"] ?? "";
  const request = aRequest("a1", [aContainerService("web", { container })]);
  await watchToEnd(world, (await world.forage().applyResources(request)).rolloutId);
  const good = [...agent.assignments.values()].map(version);
  agent.behaviour = (pod) =>
    good.includes(version(pod)) ? agent.running(pod) : waitingPod(pod, "CrashLoopBackOff", "soon", 2, 1);
  await put("bad");
  const effectiveRevision = async () => {
    const { revisions } = await world.operator().listRevisions(SERVICE);
    return revisions.find((revision) => revision.inForce)?.number;
  };
  await until(
    "the new version has failed",
    async () => (await world.operator().listRevisions(SERVICE)).revisions.length === 2,
  );
  await until("the first revision is effective", async () => (await effectiveRevision()) === 1);
  await until("its pods are there", () => agent.assignments.size === 2);
  assert.deepEqual([...agent.assignments.values()].map(version), good);
});

test("restores a secret's old content with an undo until the secret changes again", LIMIT, async (t) => {
  const world = await startWorld(t);
  const put = (value: string) => {
    const spec = { $case: "secret", value: { data: { key: Buffer.from(value) } } };
    const object = { namespace: "shop", name: "token", spec };
    return world.operator().putObject(PutObjectRequest.fromPartial({ namespace: "shop", object } as object));
  };
  await put("old");
  const valueSource = { $case: "secretRef", value: { secretName: "token", key: "key" } } as const;
  const container = { name: "main", image: "app:v1", env: [{ name: "KEY", valueSource }] };
  const agent = await HollowAgent.start(world);
  const versions = () => [
    ...new Set([...agent.assignments.values()].map((pod) => pod.template?.objectVersions["secret/token"])),
  ];
  const resource = aContainerService("web", { container });
  const first = await world.forage().applyResources(aRequest("a1", [resource]));
  await watchToEnd(world, first.rolloutId);
  const old = versions();
  const isGood = async (number: number) =>
    (await world.operator().listRevisions(SERVICE)).revisions.some((it) => it.number === number && it.good);
  await put("new");
  await until("the new content has proved itself", () => isGood(2));
  assert.notDeepEqual(versions(), old);
  const undone = await update(world, "undo");
  assert.equal(
    undone.message,
    "undone to revision 1, with secret/token at its versions until they change again",
  );
  const lines = await watchToEnd(world, undone.rolloutId);
  assert.match(lines.at(-1) ?? "", /SUCCEEDED 2\/2 ready/);
  assert.deepEqual(versions(), old);
  await put("newest");
  await until("the newest content has proved itself", () => isGood(4));
  await until("the old pods are gone", () => versions().length === 1);
  assert.notDeepEqual(versions(), old);
  await watchToEnd(world, (await update(world, "undo", 3)).rolloutId);
  assert.deepEqual(versions(), old);
  const again = await world.forage().applyResources(aRequest("a2", [resource]));
  await watchToEnd(world, again.rolloutId);
  assert.notDeepEqual(versions(), old, "an apply of the same content takes the present one");
});

test("keeps versions of a secret as long as a revision is pinned to them", LIMIT, async (t) => {
  const world = await startWorld(t);
  const put = async (value: string) => {
    const spec = { $case: "secret", value: { data: { key: Buffer.from(value) } } };
    const object = { namespace: "shop", name: "token", spec };
    const request = PutObjectRequest.fromPartial({ namespace: "shop", object } as object);
    return (await world.operator().putObject(request)).object?.version ?? "";
  };
  const name = { namespace: "shop", kind: "secret", name: "token" } as const;
  const isKept = async (version: string) =>
    (await world.store.get(objectVersionKey(name, version))) !== undefined;
  const [pinned, loose] = [await put("pinned"), await put("loose")];
  const revision = { ...SERVICE, number: 1, objectVersions: { "secret/token": pinned } };
  const key = revisionKey(SERVICE.namespace, SERVICE.kind, SERVICE.name, 1);
  const value = encodeRecord(RevisionRecord, RevisionRecord.fromPartial(revision));
  await world.store.txn([], [{ type: "put", key, value }]);
  for (let i = 0; i < 12; i++) await put(`later ${i}`);
  await until("the other old one is gone", async () => !(await isKept(loose)));
  assert.equal(await isKept(pinned), true);
  await world.store.txn([], [{ type: "delete", key }]);
  await until("it goes with the revision", async () => !(await isKept(pinned)));
});
