import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { AuditFields } from "@forage/common/audit-chain";
import { nodeId } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import { createKeyAndCsr } from "@forage/identity/csr";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { status } from "@grpc/grpc-js";
import { NO_AUDIT_LOG } from "../src/audit/audit-log.ts";
import { decodeRecord, encodeRecord } from "../src/model/codec.ts";
import { nodeKey } from "../src/model/keys.ts";
import { HollowAgent, join } from "./support/hollow-agent.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const DENIED = { code: status.PERMISSION_DENIED };

async function tokenFor(world: World, nodeName = "", reusable = false): Promise<string> {
  const request = { ttlSeconds: 60, nodeName, reusable, labels: { rack: "r1" }, taints: [] };
  return (await world.operator().createJoinToken(request)).token;
}

test("creates one node with one key for a token", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const { response } = await join(world, token, "n1");
  assert.match(response.certificatePem, /BEGIN CERTIFICATE/);
  assert.equal(response.caBundlePem, world.caPem);
  assert.equal(response.clusterId, "test-cluster");
  const { nodes } = await world.operator().listNodes({});
  assert.deepEqual(
    nodes.map(({ name, ready, labels }) => ({ name, ready, labels })),
    [{ name: "n1", ready: false, labels: { "kubernetes.io/hostname": "n1", rack: "r1" } }],
  );
  await assert.rejects(join(world, token, "n2"), { ...DENIED, details: /has been used/ });
});

test("gives a node the taints of its token when it joins, and keeps others", LIMIT, async (t) => {
  const world = await startWorld(t);
  const tokenWith = async (value: string): Promise<string> => {
    const taints = [{ key: "new", value, effect: "NoSchedule" }];
    const request = { ttlSeconds: 60, nodeName: "n1", reusable: false, labels: {}, taints };
    return (await world.operator().createJoinToken(request)).token;
  };
  await join(world, await tokenWith("first"), "n1");
  const own = { key: "own", value: "", effect: "NoExecute" };
  const change = { name: "n1", setTaints: [own], removeTaints: [], setLabels: {}, removeLabels: [] };
  await world.operator().updateNode(change);
  await join(world, await tokenWith("second"), "n1");
  const { nodes } = await world.operator().listNodes({});
  const taints = nodes[0]?.taints.map(({ key, value }) => `${key}=${value}`);
  assert.deepEqual(taints?.sort(), ["new=second", "own="]);
});

test("answers a repeated join after a lost answer, but only to the same key", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const key = await createKeyAndCsr();
  await join(world, token, "n1", { key });
  const { response } = await join(world, token, "n1", { key });
  assert.match(response.certificatePem, /BEGIN CERTIFICATE/);
  await assert.rejects(join(world, token, "n1"), DENIED);
  await assert.rejects(join(world, token, "n2", { key }), { ...DENIED, details: /another name/ });
  const agent = new HollowAgent(world, "n1", { certPem: response.certificatePem, keyPem: key.keyPem }, {});
  await until(
    "the node is ready",
    async () => (await world.operator().listNodes({})).nodes[0]?.ready ?? false,
  );
  assert.equal(agent.ended, undefined);
});

test(
  "refuses and audits a repeated join after its node has connected, and changes nothing",
  LIMIT,
  async (t) => {
    const entries: AuditFields[] = [];
    const audit = { ...NO_AUDIT_LOG, append: (entry: AuditFields) => void entries.push(entry) };
    const world = await startWorld(t, {}, {}, { audit });
    const taints = [{ key: "new", value: "", effect: "NoSchedule" }];
    const request = { ttlSeconds: 60, nodeName: "", reusable: false, labels: {}, taints };
    const { token } = await world.operator().createJoinToken(request);
    const key = await createKeyAndCsr();
    await join(world, token, "n1", { key });
    const { response } = await join(world, token, "n1", { key });
    const agent = new HollowAgent(world, "n1", { certPem: response.certificatePem, keyPem: key.keyPem }, {});
    const isReady = async () => (await world.operator().listNodes({})).nodes[0]?.ready ?? false;
    await until("the node is ready", isReady);
    const change = {
      name: "n1",
      setTaints: [],
      removeTaints: [{ key: "new", value: "", effect: "NoSchedule" }],
      setLabels: {},
      removeLabels: [],
    };
    await world.operator().updateNode(change);
    await until("its connection is recorded", async () => (await recordOf(world, "n1")).hasConnected);
    const { serials } = await recordOf(world, "n1");
    for (let count = 0; count < 3; count++)
      await assert.rejects(join(world, token, "n1", { key }), {
        ...DENIED,
        details: /used by this node, which has received its certificate/,
      });
    assert.deepEqual((await recordOf(world, "n1")).serials, serials);
    const refused = entries.filter(({ event, method }) => event === "refused" && method?.endsWith("/Join"));
    assert.ok(refused.length > 0);
    assert.match(String(refused[0]?.message), /used by this node/);
    agent.close();
    const again = agent.again();
    await until("the node connects with the certificate that it has", () => again.received !== undefined);
    assert.equal(again.ended, undefined);
    const { nodes } = await world.operator().listNodes({});
    assert.deepEqual(nodes[0]?.taints, []);
  },
);

test("limits the answers to joins of one key", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const key = await createKeyAndCsr();
  const first = await join(world, token, "n1", { key });
  for (let count = 1; count < 20; count++) await join(world, token, "n1", { key });
  await assert.rejects(join(world, token, "n1", { key }), { ...DENIED, details: /used by this node/ });
  const pair = { certPem: first.response.certificatePem, keyPem: key.keyPem };
  const agent = new HollowAgent(world, "n1", pair, {});
  await until("the node connects with the first answer", () => agent.received !== undefined);
  await until("its connection is recorded", async () => (await recordOf(world, "n1")).hasConnected);
});

test("refuses a wrong secret, an unknown token and an expired token", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const [prefix, pin, id, secret = ""] = token.split(".");
  const wrong = [prefix, pin, id, `${secret.startsWith("A") ? "B" : "A"}${secret.slice(1)}`].join(".");
  const unknown = [prefix, pin, "0".repeat(12), secret].join(".");
  for (const bad of [wrong, unknown])
    await assert.rejects(join(world, bad, "n1"), { ...DENIED, details: /unknown or wrong/ });
  for (const tokenId of ["", "\0", "../nodes/n1", "x".repeat(5_000)])
    await assert.rejects(join(world, token, "n1", { tokenId }), { ...DENIED, details: /unknown or wrong/ });
  world.clock.skip(60_000);
  await assert.rejects(join(world, token, "n1"), { ...DENIED, details: /expired/ });
  assert.deepEqual((await world.operator().listNodes({})).nodes, []);
});

test("limits a token for one node to that node, and lets it join again", LIMIT, async (t) => {
  const world = await startWorld(t);
  const first = await HollowAgent.start(world, { name: "n1" });
  const token = await tokenFor(world, "n1");
  await assert.rejects(join(world, token, "n2"), { ...DENIED, details: /another name/ });
  const { keyPem, response } = await join(world, token, "n1");
  new HollowAgent(world, "n1", { certPem: response.certificatePem, keyPem }, {});
  await until("the old certificate counts no more", () => first.ended !== undefined);
  const old = first.again();
  await until("the old certificate is not let in", () => old.ended !== undefined);
});

test("refuses a name in use to a token for any name", LIMIT, async (t) => {
  const world = await startWorld(t);
  await join(world, await tokenFor(world), "n1");
  const token = await tokenFor(world);
  await assert.rejects(join(world, token, "n1"), {
    code: status.ALREADY_EXISTS,
    details: /has joined already/,
  });
  await join(world, token, "n2");
});

test("refuses names that no node can have, and unsigned requests", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const invalid = { code: status.INVALID_ARGUMENT };
  for (const name of ["", "-n1", "N1", "a/b", "../n1", "n1\n", "x".repeat(300)])
    await assert.rejects(join(world, token, name), invalid, JSON.stringify(name));
  const { keyPem } = await createKeyAndCsr();
  for (const csrPem of ["", "nonsense", keyPem])
    await assert.rejects(join(world, token, "n1", { key: { keyPem, csrPem } }), {
      ...invalid,
      details: /csr/,
    });
  await join(world, token, "n1");
});

test("accepts many nodes for a token of a rack", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world, "", true);
  await Promise.all(
    ["n1", "n2", "n3"].map((name) => join(world, token, name).catch(() => join(world, token, name))),
  );
  assert.equal((await world.operator().listNodes({})).nodes.length, 3);
});

test("accepts one of two that use a token concurrently", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await tokenFor(world);
  const joined = await Promise.allSettled(["n1", "n2", "n3", "n4"].map((name) => join(world, token, name)));
  assert.equal(joined.filter((result) => result.status === "fulfilled").length, 1);
  assert.equal((await world.operator().listNodes({})).nodes.length, 1);
});

test("disconnects a removed or revoked node, and refuses it", LIMIT, async (t) => {
  const world = await startWorld(t);
  const revoked = await HollowAgent.start(world, { name: "n1" });
  const forgotten = await HollowAgent.start(world, { name: "n2" });
  await until(
    "both are ready",
    async () => (await world.operator().listNodes({})).nodes.filter((n) => n.ready).length === 2,
  );
  const stored = await world.store.get(nodeKey("n1"));
  assert.ok(stored);
  const record = { ...decodeRecord(NodeRecord, stored.key, stored.value), revoked: true };
  await world.store.txn(
    [],
    [
      { type: "put", key: stored.key, value: encodeRecord(NodeRecord, record) },
      { type: "delete", key: nodeKey("n2") },
    ],
  );
  for (const agent of [revoked, forgotten]) {
    await until(`${agent.name} is cut off`, () => agent.ended !== undefined);
    const again = agent.again();
    await until(`${agent.name} is not let in again`, () => again.ended !== undefined);
  }
});

test(
  "does not restore a node by a used token that was revoked, removed or has joined again",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const token = await tokenFor(world, "", true);
    for (const change of ["revoke", "forget", "join anew"] as const) {
      const name = change.replace(" ", "-");
      const key = await createKeyAndCsr();
      await join(world, token, name, { key });
      await join(world, token, name, { key });
      const stored = await world.store.get(nodeKey(name));
      assert.ok(stored);
      const record = decodeRecord(NodeRecord, stored.key, stored.value);
      const value = encodeRecord(NodeRecord, { ...record, revoked: true });
      if (change === "revoke") await world.store.txn([], [{ type: "put", key: stored.key, value }]);
      else if (change === "forget") await world.store.txn([], [{ type: "delete", key: stored.key }]);
      else await join(world, await tokenFor(world, name), name);
      await assert.rejects(join(world, token, name, { key }), DENIED, change);
    }
  },
);

test("renews the certificate of a node for itself only", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  const { keyPem, csrPem } = await createKeyAndCsr();
  const { certificatePem } = await agent.renew(Buffer.from(csrPem));
  const renewed = new HollowAgent(world, "n1", { certPem: certificatePem, keyPem }, {});
  await until("the newer session took over", () => agent.ended !== undefined);
  assert.equal(renewed.ended, undefined);
  await assert.rejects(renewed.renew(Buffer.from("nonsense")), { code: status.INVALID_ARGUMENT });
});

test("keeps the certificate of a node whose renewals are repeatedly lost", LIMIT, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  const { csrPem } = await createKeyAndCsr();
  for (let lost = 0; lost < 3; lost++) await agent.renew(Buffer.from(csrPem));
  const again = agent.again();
  await until("the newer session took over", () => agent.ended !== undefined);
  await again.renew(Buffer.from(csrPem));
  assert.equal(again.ended, undefined);
});

describe("an expired certificate", () => {
  const nodeCertificates = { lifetimeDays: 1, graceDays: 2 };
  const dayMs = 24 * 3600 * 1000;

  test("is renewed within the grace period, and permits nothing else", LIMIT, async (t) => {
    const world = await startWorld(t, {}, { nodeCertificates });
    const agent = await HollowAgent.start(world, { name: "n1" });
    const [node] = (await world.operator().listNodes({})).nodes;
    const endsMs = Number(node?.certificateEnds?.seconds ?? 0n) * 1000;
    assert.ok(Math.abs(endsMs - world.clock.nowMs() - dayMs) < 60_000, "its end is shown");
    const expired = await expiredPair(world, "n1", -60_000);
    const stranger = new HollowAgent(world, "n1", expired, { heartbeats: false });
    await until("it may not connect", () => stranger.ended !== undefined);
    assert.match(String(stranger.ended), /not accepted: CERT_HAS_EXPIRED/);
    const { keyPem, csrPem } = await createKeyAndCsr();
    const { certificatePem } = await stranger.renew(Buffer.from(csrPem));
    const renewed = new HollowAgent(world, "n1", { certPem: certificatePem, keyPem }, {});
    await until("the newer session took over", () => agent.ended !== undefined);
    assert.equal(renewed.ended, undefined);
    await assert.rejects(stranger.forage().deleteResources({ namespace: "shop", labels: { a: "b" } }), {
      code: status.UNAUTHENTICATED,
    });
  });

  for (const [what, endedMs, change] of [
    ["after the grace period", -2 * dayMs - 60_000, undefined],
    ["once its node was revoked", -60_000, "revoke"],
    ["once its node was forgotten", -60_000, "forget"],
    ["by another cluster's authority", -60_000, "forge"],
  ] as const)
    test(`is not renewed ${what}`, LIMIT, async (t) => {
      const world = await startWorld(t, {}, { nodeCertificates });
      await HollowAgent.start(world, { name: "n1" });
      const pair = await expiredPair(world, "n1", endedMs, change === "forge");
      const stored = await world.store.get(nodeKey("n1"));
      assert.ok(stored);
      const record = { ...decodeRecord(NodeRecord, stored.key, stored.value), revoked: true };
      if (change === "revoke")
        await world.store.txn(
          [],
          [{ type: "put", key: stored.key, value: encodeRecord(NodeRecord, record) }],
        );
      if (change === "forget") await world.store.txn([], [{ type: "delete", key: stored.key }]);
      const stranger = new HollowAgent(world, "n1", pair, { heartbeats: false });
      const { csrPem } = await createKeyAndCsr();
      await assert.rejects(stranger.renew(Buffer.from(csrPem)), { code: status.UNAUTHENTICATED });
    });
});

/**
 * Returns a certificate of the node that expired this long ago, and that the coordinator knows as
 * its newest.
 */
async function expiredPair(world: World, name: string, endedMs: number, forged = false) {
  const options = { nowMs: () => Date.now() - 10 * 24 * 3600 * 1000, randomBytes };
  const { keyPem, csrPem } = await createKeyAndCsr();
  const past = forged
    ? await CertificateAuthority.create("test", options)
    : await CertificateAuthority.fromPem(world.authority.toPem(), options);
  const issued = await past.issueNode(nodeId(name), csrPem, 10 * 24 * 3600 * 1000 + endedMs);
  const stored = await world.store.get(nodeKey(name));
  assert.ok(stored);
  const record = decodeRecord(NodeRecord, stored.key, stored.value);
  const serials = [...record.serials, issued.serial];
  const value = encodeRecord(NodeRecord, { ...record, serials });
  await world.store.txn([], [{ type: "put", key: stored.key, value }]);
  return { certPem: issued.chainPem, keyPem };
}

async function recordOf(world: World, name: string): Promise<NodeRecord> {
  const stored = await world.store.get(nodeKey(name));
  assert.ok(stored);
  return decodeRecord(NodeRecord, stored.key, stored.value);
}
