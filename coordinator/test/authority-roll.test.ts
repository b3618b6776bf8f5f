import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createKeyAndCsr } from "@forage/identity/csr";
import { splitCertificates } from "@forage/identity/pem";
import { status } from "@grpc/grpc-js";
import { CoordinatorProcess } from "./support/coordinator-process.ts";
import { HollowAgent, join as joinCluster, type KeyPair } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

test("replaces the authority while nodes run, across a crash of the coordinator, and then refuses the old one", async (t) => {
  const dir = tempDir(t);
  const first = await CoordinatorProcess.start(t, dir);
  const agents = await Promise.all(["n1", "n2"].map((name) => HollowAgent.start(first, { name })));
  const [n1, n2] = agents;
  assert.ok(n1 && n2);
  await first.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const assigned = (): number => n1.assignments.size + n2.assignments.size;
  await until("both pods are assigned", () => assigned() === 2);
  const oldRoot = first.caPem;
  assert.deepEqual(await dependentsOf(first), [[]]);
  await assert.rejects(first.operator().retireAuthority({}), {
    code: status.FAILED_PRECONDITION,
    details: /the cluster has one authority: `forage ca roll`/,
  });

  await first.operator().rollAuthority({});
  assert.deepEqual(await dependentsOf(first), [["n1", "n2"], []]);
  assert.equal(splitCertificates(first.caPem).length, 2);
  assert.ok(first.caPem.startsWith(oldRoot));
  await until("both nodes are asked to renew", () => agents.every((it) => it.renewalsAsked === 1));
  await assert.rejects(first.operator().rollAuthority({}), { code: status.FAILED_PRECONDITION });
  const one = await renewed(n1);
  // The answer to this request is lost, so the node keeps its old certificate.
  const two = await renewed(n2);
  const n1Later = new HollowAgent(first, "n1", one, {});
  await until("n1 has connected with its new certificate", async () => {
    return String(await dependentsOf(first)) === "n2,";
  });
  await assert.rejects(first.operator().retireAuthority({}), {
    code: status.FAILED_PRECONDITION,
    details: /^1 node depends on the older authority: n2; /,
  });
  assert.equal(n1Later.ended, undefined);
  assert.equal(n2.ended, undefined);
  await first.kill();

  const second = await CoordinatorProcess.start(t, dir);
  assert.deepEqual(await dependentsOf(second), [["n2"], []]);
  const back = new HollowAgent(second, "n1", one, {});
  const old = new HollowAgent(second, "n2", n2.pair, {});
  await until("n1 and n2 are ready", () => areReady(second, 2));
  assert.deepEqual(await dependentsOf(second), [["n2"], []], "n2 uses its old certificate");
  const later = new HollowAgent(second, "n2", two, {});
  await until("n2 has connected with its new certificate", async () => {
    return String(await dependentsOf(second)) === ",";
  });
  const { token } = await joinToken(second);
  await second.operator().retireAuthority({});
  const newRoot = second.caPem;
  assert.equal(splitCertificates(newRoot).length, 1);
  assert.ok(!newRoot.includes(oldRoot));
  await until("the older session has ended", () => old.ended !== undefined);
  await until("n1 and n2 are ready", () => areReady(second, 2));
  assert.deepEqual([back.ended, later.ended], [undefined, undefined]);
  const outdated = new HollowAgent(second, "n2", n2.pair, {});
  await until("the old certificate is refused", () => outdated.ended !== undefined);
  await assert.rejects(joinCluster({ address: second.address, caPem: oldRoot }, token, "n3"));
  const n3 = await HollowAgent.start(second, { name: "n3" });
  await until("the new node is ready", () => areReady(second, 3));
  assert.equal(n3.ended, undefined);
  await second.kill();

  const third = await CoordinatorProcess.start(t, dir);
  assert.equal(third.caPem, newRoot);
  for (const [name, pair] of [
    ["n1", one],
    ["n2", two],
    ["n3", n3.pair],
  ] as const)
    new HollowAgent(third, name, pair, {});
  await until("all nodes are ready", () => areReady(third, 3));
});

test("reports that an authority can't be replaced", async (t) => {
  const world = await startWorld(t);
  const refused = { code: status.FAILED_PRECONDITION, details: /can't replace its authority/ };
  await assert.rejects(world.operator().rollAuthority({}), refused);
  const viewer = world.operator(await world.token("viewer"));
  await assert.rejects(viewer.rollAuthority({}), { code: status.PERMISSION_DENIED });
  await assert.rejects(viewer.retireAuthority({}), { code: status.PERMISSION_DENIED });
});

/** Returns the nodes that depend on each authority, oldest authority first. */
async function dependentsOf(world: CoordinatorProcess): Promise<string[][]> {
  const { authorities } = await world.operator().listAuthorities({});
  return authorities.map(({ nodes }) => nodes);
}

async function renewed(agent: HollowAgent): Promise<KeyPair> {
  const { keyPem, csrPem } = await createKeyAndCsr();
  const { certificatePem, caBundlePem } = await agent.renew(Buffer.from(csrPem));
  assert.equal(splitCertificates(caBundlePem).length, 2);
  return { certPem: certificatePem, keyPem };
}

async function areReady(world: CoordinatorProcess, count: number): Promise<boolean> {
  const { nodes } = await world.operator().listNodes({});
  return nodes.filter(({ ready }) => ready).length === count;
}

function joinToken(world: CoordinatorProcess) {
  return world
    .operator()
    .createJoinToken({ ttlSeconds: 0, nodeName: "n3", reusable: false, labels: {}, taints: [] });
}

function tempDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-authority-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
