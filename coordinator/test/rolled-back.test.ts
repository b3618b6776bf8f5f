import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createKeyAndCsr } from "@forage/identity/csr";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord, encodeRecord } from "../src/model/codec.ts";
import { nodeKey, PREFIXES } from "../src/model/keys.ts";
import { CoordinatorProcess, runTask } from "./support/coordinator-process.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

test("makes no decisions on rolled-back data until they are restored on purpose", {
  timeout: 60_000,
}, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  const other = await HollowAgent.start(world, { name: "n2" });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const pods = async (): Promise<string[]> => {
    const { pods: all } = await world.operator().listPods(EVERYTHING);
    return all.map(({ uid, stopping }) => `${uid} ${stopping}`).sort();
  };
  const before = await pods();
  agent.close();
  const back = agent.again({ name: "n1", seen: laterDataOf(world, "n1"), pods: [] });
  await until("the node says why", async () => {
    const { nodes } = await world.operator().listNodes({});
    return (
      nodes.find(({ name }) => name === "n1")?.message.startsWith("node n1 has received later data") ?? false
    );
  });
  const check = async (): Promise<void> => {
    const ready = await fetch(`http://127.0.0.1:${world.coordinator.http.port}/readyz`);
    assert.equal(ready.status, 503);
    assert.match(await ready.text(), /an old copy of the data directory was put back/);
    await assert.rejects(
      world.forage().applyResources(aRequest("a2", [aContainerService("api")])),
      /old copy of the data directory/,
    );
    assert.deepEqual(await pods(), before);
    assert.match(await metricsOf(world), /^forage_store_rolled_back 1$/m);
  };
  await check();
  const { csrPem } = await createKeyAndCsr();
  await assert.rejects(other.renew(Buffer.from(csrPem)), /old copy of the data directory/);
  assert.equal(back.assignments.size, 0, "it was sent nothing");
  await world.restart();
  const late = other.again({ name: "n2", pods: [] });
  await until("it is connected", async () =>
    (await world.operator().listNodes({})).nodes.some((it) => it.message !== ""),
  );
  await check();
  assert.equal(late.assignments.size, 0);
});

test("refuses an old copy of the whole data directory until its store is restored on purpose", {
  timeout: 600_000,
}, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-rolled-back-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const [data, copy] = [join(dir, "data"), join(dir, "copy")];
  let coordinator = await CoordinatorProcess.start(t, dir);
  const first = await HollowAgent.start(coordinator);
  const apply = (id: string, name: string) =>
    coordinator.forage().applyResources(aRequest(id, [aContainerService(name)]));
  const again = async (before: HollowAgent): Promise<HollowAgent> => {
    coordinator = await CoordinatorProcess.start(t, dir);
    const pods = [...before.assignments.values()].map((pod) => before.running(pod));
    const { name, pair, received: seen } = before;
    return new HollowAgent(coordinator, name, pair, { name, pods, ...(seen && { seen }) });
  };
  await apply("a1", "web");
  await until("the first service runs", () => first.assignments.size === 2);
  await coordinator.kill();
  await cp(data, copy, { recursive: true });
  const second = await again(first);
  await apply("a2", "api");
  await until("both services run", () => second.assignments.size === 4);
  await coordinator.kill();
  await rm(data, { recursive: true });
  await rename(copy, data);

  let message = "";
  for (const start of ["first", "second"]) {
    const refused = await again(second);
    await until(`the node says why after the ${start} start`, async () => {
      message = (await coordinator.operator().listNodes({})).nodes[0]?.message ?? "";
      return message.startsWith("node n1 has received later data");
    });
    await assert.rejects(apply("a3", "more"), /old copy of the data directory/);
    assert.equal(refused.received, undefined, "nothing was sent, so the containers stay");
    await coordinator.kill();
  }

  const [, epoch = ""] = /restore FILE --epoch (\d+)/.exec(message) ?? [];
  const backup = join(dir, "old.backup");
  for (const words of [
    ["backup", backup],
    ["restore", backup, "--epoch", epoch],
  ]) {
    const { code, stderr } = await runTask(t, dir, words);
    assert.equal(code, 0, stderr);
    if (words[0] === "backup") await rename(join(data, "store"), join(dir, "old-store"));
  }
  const restored = await again(second);
  await until("the agent follows the old data", () => restored.assignments.size === 2);
  const web = [...first.assignments.keys()].sort();
  assert.deepEqual([...restored.assignments.keys()].sort(), web);
});

test("decides nothing after a start before the node connects that has seen later data", {
  timeout: 60_000,
}, async (t) => {
  const { world, ahead, other } = await restartedWithoutPods(t);
  const back = other.again({ name: "n2", pods: [] });
  await until("a node connects", async () => (await nodeNamed(world, "n2"))?.lastSeenAt !== undefined);
  ahead.again({ name: "n1", seen: laterDataOf(world, "n1"), pods: [] });
  await until(
    "the roll-back is noticed",
    async () =>
      (await nodeNamed(world, "n1"))?.message.startsWith("node n1 has received later data") === true,
  );
  assert.deepEqual(await podNames(world), []);
  assert.equal(back.assignments.size, 0);
});

test("decides after a start once all nodes have connected", { timeout: 180_000 }, async (t) => {
  const { world, ahead, other } = await restartedWithoutPods(t);
  const agents = [ahead.again({ name: "n1", pods: [] })];
  assert.deepEqual(await podNames(world), []);
  agents.push(other.again({ name: "n2", pods: [] }));
  await until("the missing pods run", () => agents.reduce((sum, it) => sum + it.assignments.size, 0) === 2);
});

test("explains a roll-back at the nodes that were connected before it was noticed", {
  timeout: 180_000,
}, async (t) => {
  const { world, ahead, other } = await restartedWithoutPods(t);
  const agents = [ahead.again({ name: "n1", pods: [] }), other.again({ name: "n2", pods: [] })];
  await until("the missing pods run", () => agents.reduce((sum, it) => sum + it.assignments.size, 0) === 2);
  other.again({ name: "n2", seen: laterDataOf(world, "n2"), pods: [] });
  await until(
    "the other node has the reason",
    async () =>
      (await nodeNamed(world, "n1"))?.message.startsWith("node n2 has received later data") === true,
  );
});

test("decides after a start when a node has not connected in time", {
  timeout: 60_000,
}, async (t) => {
  const { world, other } = await restartedWithoutPods(t, 1);
  const back = other.again({ name: "n2", pods: [] });
  await until("a node connects", async () => (await nodeNamed(world, "n2"))?.lastSeenAt !== undefined);
  assert.deepEqual(await podNames(world), []);
  await until("the missing pods run", () => back.assignments.size === 2);
});

test("detects a rollback from a node whose certificate was renewed after the copy", {
  timeout: 60_000,
}, async (t) => {
  const { world, back } = await renewedAfterTheCopy(t);
  back.again({ name: "n1", seen: laterDataOf(world, "n1"), pods: [] });
  await until(
    "the node says why",
    async () =>
      (await nodeNamed(world, "n1"))?.message.startsWith("node n1 has received later data") === true,
  );
});

test("detects a rollback from the data that a node received which joined after the copy", {
  timeout: 60_000,
}, async (t) => {
  const world = await startWorld(t);
  const copy = (await world.store.range("")).records;
  await world.restart();
  const agent = await HollowAgent.start(world, { name: "n2" });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const { received: seen } = agent;
  assert.ok(seen);
  agent.close();
  await world.restart(async () => {
    await world.store.txn([], [{ type: "delete-prefix", prefix: "" }]);
    await world.store.txn(
      [],
      copy.map(({ key, value }) => ({ type: "put", key, value })),
    );
  });
  const back = agent.again({ name: "n2", seen, pods: [] });
  await until("it is refused", () => back.ended !== undefined);
  assert.match(await metricsOf(world), /^forage_store_rolled_back 1$/m);
});

for (const change of ["is unknown to the copy", "had been revoked when it was made"] as const) {
  test(`detects a rollback from a node that ${change}, and refuses the node`, {
    timeout: 180_000,
  }, async (t) => {
    const world = await startWorld(t);
    const agent = await HollowAgent.start(world, { name: "n1" });
    agent.close();
    await world.restart(async () => {
      if (change.startsWith("had")) await changeNode(world, (node) => ({ ...node, revoked: true }));
      else await world.store.txn([], [{ type: "delete-prefix", prefix: nodeKey("n1") }]);
    });
    const honest = agent.again({ name: "n1", pods: [] });
    await until("it is refused", () => honest.ended !== undefined);
    assert.match(await metricsOf(world), /^forage_store_rolled_back 0$/m);
    const proof = agent.again({ name: "n1", seen: laterDataOf(world, "n1"), pods: [] });
    await until("it is refused with its proof", () => proof.ended !== undefined);
    assert.match(proof.ended?.message ?? "", /UNAUTHENTICATED.* its node was removed or has joined again/);
    assert.match(await metricsOf(world), /^forage_store_rolled_back 1$/m);
    await assert.rejects(
      world.forage().applyResources(aRequest("a1", [aContainerService("web")])),
      /node n1 has received later data/,
    );
    assert.equal(proof.assignments.size + honest.assignments.size, 0);
  });
}

test("refuses a certificate that is older than the newest known one", {
  timeout: 180_000,
}, async (t) => {
  const { world, back } = await renewedAfterTheCopy(t);
  const later = { seconds: 1n << 40n, nanos: 0 };
  await world.restart(() => changeNode(world, (node) => ({ ...node, certificateBegins: later })));
  const refused = back.again({ name: "n1", pods: [] });
  await until("it is refused", () => refused.ended !== undefined);
  assert.equal((await nodeNamed(world, "n1"))?.lastSeenAt, undefined);
});

/**
 * Restores the store from before the renewal of the node's certificate; `back` has the renewed
 * certificate.
 */
async function renewedAfterTheCopy(t: TestContext): Promise<{ world: World; back: HollowAgent }> {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  const before = await world.store.get(nodeKey("n1"));
  assert.ok(before);
  // Certificates begin at whole seconds.
  world.clock.skip(2_000);
  const { keyPem, csrPem } = await createKeyAndCsr();
  const { certificatePem } = await agent.renew(Buffer.from(csrPem));
  agent.close();
  const back = new HollowAgent(world, "n1", { certPem: certificatePem, keyPem }, { name: "n1" });
  await until("it connects", async () => (await nodeNamed(world, "n1"))?.lastSeenAt !== undefined);
  back.close();
  await world.store.txn([], [{ type: "put", key: nodeKey("n1"), value: before.value }]);
  await world.restart();
  return { world, back };
}

async function changeNode(world: World, change: (node: NodeRecord) => NodeRecord): Promise<void> {
  const key = nodeKey("n1");
  const stored = await world.store.get(key);
  assert.ok(stored);
  const value = encodeRecord(NodeRecord, change(decodeRecord(NodeRecord, key, stored.value)));
  await world.store.txn([], [{ type: "put", key, value }]);
}

/** Restarts a coordinator with a store in which a service lacks its pods. Both agents are away. */
async function restartedWithoutPods(t: TestContext, startGraceSeconds = 60) {
  const nodes = {
    unreachableSeconds: 1.5,
    startGraceSeconds,
    unreachableTolerationSeconds: 60,
    notReadyTolerationSeconds: 60,
    recoveryGraceSeconds: 0,
  };
  const world = await startWorld(t, {}, { nodes });
  const ahead = await HollowAgent.start(world, { name: "n1" });
  const other = await HollowAgent.start(world, { name: "n2" });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  ahead.close();
  other.close();
  await world.restart(async () => {
    await world.store.txn(
      [],
      [
        { type: "delete-prefix", prefix: PREFIXES.pods },
        { type: "delete-prefix", prefix: PREFIXES.statuses },
      ],
    );
  });
  return { world, ahead, other };
}

/** Returns the coordinator's signed proof of a node that has seen data which this store lacks. */
function laterDataOf(world: World, node: string) {
  const assignmentRevision = (1n << 40n) + 1_000_000n;
  const secret = world.authority.deriveSecret("store history");
  const signature = createHmac("sha256", secret).update(`${node}\nlineage-1/lost\n${assignmentRevision}`);
  return { lineage: `lineage-1/lost/${signature.digest("base64url")}`, assignmentRevision };
}

async function nodeNamed(world: World, name: string) {
  return (await world.operator().listNodes({})).nodes.find((node) => node.name === name);
}

async function podNames(world: World): Promise<string[]> {
  return (await world.operator().listPods(EVERYTHING)).pods.map(({ name }) => name);
}

async function metricsOf(world: World): Promise<string> {
  return (await fetch(`http://127.0.0.1:${world.coordinator.http.port}/metrics`)).text();
}

const EVERYTHING = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
