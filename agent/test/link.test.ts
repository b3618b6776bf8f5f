import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { CertificateAuthority } from "@forage/identity/ca";
import { GatewayStatus, GatewayUpdate, PodMetricsRequests } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { systemClock } from "../src/clock.ts";
import { IdentityFiles } from "../src/link/node-identity.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { aStatus, LinkUnderTest } from "./link-under-test.ts";
import { until } from "./until.ts";

test("joins with a token, stores its assignments and reports its pods", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());

  await until("the pod is known", () => agent.pods.has("p1"));
  assert.equal(agent.link.state.kind, "connected");
  assert.equal(agent.journal.desired().get("p1")?.name, "pod-p1");
  assert.equal(agent.journal.clusterId, "test-cluster");

  coordinator.assign(anAssignment({ uid: "p2" }));
  await until("the delta is known", () => agent.pods.has("p2"));
  coordinator.forget("p1");
  await until("the removal is known", () => !agent.pods.has("p1"));
  assert.deepEqual([...agent.journal.desired().keys()], ["p2"]);
  await until("the revision is acknowledged", () => coordinator.lastRevision === coordinator.revision);

  agent.outbox.put(aStatus("p2", { ready: true }));
  await until("the status arrives", () => coordinator.statuses.get("p2")?.ready === true);
});

test("the key is readable for its owner only, and survives the process", async (t) => {
  const coordinator = await startCoordinator(t);
  const first = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => first.link.state.kind === "connected");
  const file = join(first.dir, "identity", "node.pem");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const authorityPem = await readFile(join(first.dir, "identity", "ca.pem"), "utf8");
  assert.equal(first.identity.authorityPem, authorityPem);
  await first.stop();

  const again = await LinkUnderTest.start(t, coordinator, undefined, { after: first });
  await until("connected again", () => again.link.state.kind === "connected");
  assert.equal(coordinator.joins.length, 1);
  assert.equal((await readdir(join(first.dir, "identity"))).includes("pending.json"), false);
  const next = new IdentityFiles(join(first.dir, "identity"));
  await next.loadAuthority();
  assert.deepEqual([again.identity.authorityPem, next.authorityPem], [authorityPem, authorityPem]);
});

test("never sends the secret to a coordinator with another authority", async (t) => {
  const good = await startCoordinator(t);
  const evil = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, evil, good.mintToken());
  await until("refused", () => agent.link.state.code === "REFUSED");
  assert.match(agent.link.state.message ?? "", /another authority/);
  assert.deepEqual(evil.joins, []);
});

test("does not send the secret to a server whose certificate is for another host name", async (t) => {
  const coordinator = await startCoordinator(t, { serverName: "elsewhere.example" });
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("failed", () => agent.link.state.kind === "failed");
  assert.deepEqual(coordinator.joins, []);
});

test("rejects a used or expired token, with instructions", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken({ expiresAtMs: 1 }));
  await until("refused", () => agent.link.state.code === "REFUSED");
  assert.match(agent.link.state.message ?? "", /token/);
  await writeFile(agent.tokenFile, coordinator.mintToken());
  await until("joined with the fresh one", () => agent.link.state.kind === "connected");
});

test("reconnects after the coordinator was unreachable, and reports its state", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("p1"));
  await coordinator.close();
  await until("noticed", () => agent.link.state.kind !== "connected");
  assert.equal(agent.pods.has("p1"), true);

  const { authority, port } = coordinator;
  const successor = await startCoordinator(t, { authority, port });
  successor.revision = coordinator.revision;
  successor.assign(anAssignment({ uid: "p1" }));
  await until("connected again", () => successor.hellos.length > 0);
  assert.equal(successor.hellos[0]?.clusterId, "test-cluster");
  assert.equal(successor.hellos[0]?.assignmentRevision, coordinator.revision);
  assert.equal(successor.hellos[0]?.lineage, `signed/${coordinator.revision}`);
});

test("rejects a coordinator of another cluster or with older data, and changes nothing", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("p1"));
  const { authority, port, revision } = coordinator;
  await coordinator.close();

  const stranger = await startCoordinator(t, { authority, port, clusterId: "other" });
  await until("refused", () => agent.link.state.code === "NOT_OURS");
  assert.match(agent.link.state.message ?? "", /test-cluster.*other/);
  await stranger.close();

  const older = await startCoordinator(t, { authority, port });
  older.revision = revision - 1n;
  await until("refused again", () => /older data/.test(agent.link.state.message ?? ""));
  assert.deepEqual([...agent.pods.keys()], ["p1"]);
  assert.deepEqual([...agent.journal.desired().keys()], ["p1"]);
});

test("with a disk that can't be written, rejects new pods one by one, ends others, and keeps the connection", async (t) => {
  const clock = aClock();
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "old" }), anAssignment({ uid: "kept" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("assigned", () => agent.pods.has("old"));
  const connections = coordinator.hellos.length;
  const inTheWay = join(agent.dir, "journal", "index.tmp");
  await mkdir(inTheWay);

  coordinator.assign(anAssignment({ uid: "new" }));
  await until("it is refused", async () => {
    await clock.run(100);
    return coordinator.statuses.get("new")?.reason === "JournalNotWritten";
  });
  assert.match(coordinator.statuses.get("new")?.message ?? "", /the journal could not be written: E/);
  assert.match(agent.journalProblems.at(-1) ?? "", /the journal could not be written/);
  assert.equal(agent.pods.has("new"), false, "begun without a record");
  coordinator.stop("old");
  await until("the pod is asked to stop", () => agent.pods.get("old")?.stopping === true);
  agent.outbox.put(aStatus("kept", { ready: true }));
  await until("statuses arrive", async () => {
    await clock.run(100);
    return coordinator.statuses.get("kept")?.ready === true;
  });
  const heartbeats = coordinator.heartbeats;
  await until("heartbeats arrive", async () => {
    await clock.run(1_000);
    return coordinator.heartbeats > heartbeats;
  });
  assert.equal(agent.pods.get("kept")?.stopping, false);

  await rmdir(inTheWay);
  coordinator.assign(anAssignment({ uid: "newer" }));
  await until("both are begun", async () => {
    await clock.run(1_000);
    return agent.pods.has("new") && agent.pods.has("newer");
  });
  assert.deepEqual([...agent.journal.desired().keys()].sort(), ["kept", "new", "newer", "old"]);
  assert.equal(agent.journalProblems.at(-1), undefined);
  assert.equal(coordinator.hellos.length, connections, "connected again");
  assert.equal(agent.states.filter(({ kind }) => kind === "failed").length, 0);
});

test("retries a failed write by itself", async (t) => {
  const clock = aClock();
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken(), { clock });
  await until("connected", () => agent.link.state.kind === "connected");
  await until("the first snapshot is written", () => agent.journal.clusterId !== "");
  const inTheWay = join(agent.dir, "journal", "index.tmp");
  await mkdir(inTheWay);
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("it failed", () => agent.journalProblems.at(-1) !== undefined);
  await rmdir(inTheWay);
  await until("it is begun", async () => {
    await clock.run(1_000);
    return agent.pods.has("p1");
  });
});

test("a pod that can't be recorded does not affect others, and its running version stays unchanged", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("p1"));
  const huge = ["x".repeat(5 * 2 ** 20)];
  coordinator.assign(
    anAssignment({ uid: "p1", command: huge }),
    anAssignment({ uid: "huge", command: huge }),
    anAssignment({ uid: "p2" }),
  );
  await until("the others are begun", () => agent.pods.has("p2"));
  await until("it is refused", () => coordinator.statuses.get("huge")?.reason === "InvalidAssignment");
  assert.match(coordinator.statuses.get("huge")?.message ?? "", /has \d+ bytes, more than/);
  assert.equal(agent.pods.has("huge"), false);
  // Applies also if all pods arrive at once.
  const { authority, port, revision } = coordinator;
  await coordinator.close();
  const successor = await startCoordinator(t, { authority, port });
  successor.revision = revision;
  successor.assign(anAssignment({ uid: "huge", command: huge }), anAssignment({ uid: "p1", command: huge }));
  await until("p2 is gone, which is no longer assigned", () => !agent.pods.has("p2"));
  assert.deepEqual([...agent.journal.desired().keys()], ["p1"]);
});

test("ignores a change that was received before", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => coordinator.connections === 1);
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("assigned", () => agent.pods.has("p1"));
  coordinator.send([], ["p1"], coordinator.revision);
  coordinator.assign(anAssignment({ uid: "p2" }));
  await until("the next one is taken", () => agent.pods.has("p2"));
  assert.equal(agent.pods.has("p1"), true);
  assert.equal(coordinator.hellos.length, 1, "on the same connection");
});

test("renews its certificate over the old one and switches to it without interruption", async (t) => {
  // Certificates begin five minutes in the past, so half of this one's validity is over at once. It ends after the
  // test's limit, because the coordinator closes connections whose certificates have expired.
  const coordinator = await startCoordinator(t, { certificateLifetimeMs: 300_000 });
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("renewed", () => coordinator.renewals === 1);
  await until("gone over", () => coordinator.hellos.length === 2 && coordinator.connections === 1);
  assert.equal(
    agent.states.some((it) => it.kind === "failed"),
    false,
  );
  const ends = agent.link.state.certificateEndsMs ?? 0;
  assert.ok(ends > Date.now() + 3_600_000, "the new certificate is in use");
  coordinator.assign(anAssignment({ uid: "p1" }));
  await until("the new stream works", () => agent.pods.has("p1"));
});

test("an expired certificate leaves the pods unchanged and requires a new token", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "p1" }));
  const first = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => first.pods.has("p1"));
  await first.stop();
  coordinator.refusesRenewals = true;

  const clock = { ...systemClock, nowMs: () => Date.now() + 40 * 24 * 3_600_000 };
  const late = await LinkUnderTest.start(t, coordinator, undefined, { after: first, clock });
  await until("the link reports the expiry", () => late.link.state.code === "CERTIFICATE_EXPIRED");
  assert.match(late.link.state.message ?? "", /pods keep running.*token/);
  assert.deepEqual([...late.journal.desired().keys()], ["p1"]);
  await writeFile(late.tokenFile, coordinator.mintToken());
  await until("joined again", () => coordinator.joins.length === 2);
});

test("a certificate that is not valid yet is renewed if the coordinator does so; otherwise the reason is reported", async (t) => {
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const authority = await CertificateAuthority.create("test", { nowMs, randomBytes });
  const coordinator = await startCoordinator(t, { authority });
  // The node joins while the coordinator's clock is three hours ahead.
  aheadMs = 3 * 3_600_000;
  coordinator.refusesRenewals = true;
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("the reason is given", () => agent.link.state.code === "CERTIFICATE_NOT_YET_VALID");
  assert.match(agent.link.state.message ?? "", /is valid from .*Z, and .* says .*compare the clocks/);
  aheadMs = 0;
  coordinator.refusesRenewals = false;
  await until("connected", () => agent.link.state.kind === "connected");
  assert.equal(coordinator.joins.length, 1);
  assert.equal(coordinator.renewals, 1);
});

test("the secret is only in the operator's file, and in no reported state", async (t) => {
  const coordinator = await startCoordinator(t);
  const token = coordinator.mintToken();
  const agent = await LinkUnderTest.start(t, coordinator, token);
  await until("connected", () => agent.link.state.kind === "connected");
  const secret = token.split(".")[3] ?? "";
  assert.equal(JSON.stringify(agent.states).includes(secret), false);
  for (const name of await readdir(join(agent.dir, "identity"))) {
    const text = await readFile(join(agent.dir, "identity", name), "utf8");
    assert.equal(text.includes(secret), false, name);
  }
});

async function startCoordinator(t: TestContext, options: Parameters<typeof FakeCoordinator.start>[0] = {}) {
  const coordinator = await FakeCoordinator.start(options);
  t.after(() => coordinator.close());
  return coordinator;
}

test("newer identity tokens reach their pods at once, and older ones are never used again", async (t) => {
  const coordinator = await startCoordinator(t);
  const podConfig = PodConfig.fromPartial({ serviceAccountName: "builder" });
  const assignment = (token: string, expiresAtSeconds: number) => ({
    ...anAssignment({ uid: "p1", template: { podConfig } }),
    identityToken: { token, expiresAt: { seconds: BigInt(expiresAtSeconds), nanos: 0 } },
  });
  coordinator.assign(assignment("first", 1_000));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  const token = () => agent.pods.get("p1")?.objects?.identityToken;
  await until("the first token", () => token() === "first");

  coordinator.sendTokens({ p1: "second", unknown: "other" }, 2_000);
  await until("the second token", () => token() === "second");
  assert.equal(agent.journal.desired().get("p1")?.identityToken?.token, "first", "not worth a write");
  assert.deepEqual([...agent.pods.keys()], ["p1"]);

  coordinator.assign({ ...assignment("first", 1_000), labels: { changed: "yes" } });
  await until("the change", () => agent.pods.get("p1")?.labels?.changed === "yes");
  assert.equal(token(), "second");
  coordinator.assign(assignment("third", 3_000));
  await until("the third token", () => token() === "third");

  coordinator.forget("p1");
  await until("gone", () => agent.pods.size === 0);
  coordinator.assign(assignment("first", 1_000));
  await until("a pod of the same uid starts without old state", () => token() === "first");
});

test("an assignment in several messages is applied as one", async (t) => {
  const coordinator = await startCoordinator(t);
  coordinator.assign(anAssignment({ uid: "old" }));
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("assigned", () => agent.pods.has("old"));
  const revision = coordinator.revision + 1n;
  coordinator.sendDelta({ revision, upserts: [anAssignment({ uid: "a" })], more: true });
  coordinator.sendDelta({ revision, removals: ["old"], more: true });
  // Messages are processed in order, so with the token the parts have been processed.
  coordinator.sendTokens({ old: "seen" }, 1_000);
  await until("the parts are read", () => agent.pods.get("old")?.objects?.identityToken === "seen");
  assert.deepEqual([...agent.pods.keys()], ["old"], "half of it is nothing");
  coordinator.sendDelta({ revision });
  await until("the whole", () => agent.pods.has("a"));
  assert.deepEqual([...agent.pods.keys()], ["a"]);
  assert.equal(agent.journal.revision, revision);

  coordinator.sendDelta({ revision: revision + 1n, upserts: [anAssignment({ uid: "b" })], more: true });
  coordinator.sendDelta({ revision: revision + 2n, upserts: [anAssignment({ uid: "c" })] });
  await until("refused", () => agent.link.state.code === "PROTOCOL");
  assert.deepEqual([...agent.pods.keys()], ["a"]);
});

test("measures pods while the coordinator requests it and is connected", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => agent.link.state.kind === "connected");
  const requests = PodMetricsRequests.fromPartial({
    pods: [{ podUid: "p1", usage: true }],
    intervalMs: 2_000,
  });
  coordinator.askMetrics(requests);
  await until("it is measured", () => coordinator.metrics.length > 0);
  assert.deepEqual(agent.asked, [requests]);
  assert.deepEqual(
    coordinator.metrics.map(({ podUid, memoryBytes }) => [podUid, memoryBytes]),
    [["p1", 7n]],
  );
  await coordinator.close();
  await until("the request is withdrawn", () => agent.asked.length === 2);
  assert.equal(agent.asked[1], undefined);
});

test("passes on a gateway's hosts, and reports its state on each connection", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
  const update = GatewayUpdate.fromPartial({ full: true, gateway: "default", version: 3n });
  coordinator.sendGateway(update);
  await until("it is handed on", () => agent.gateway.applied.length === 1);
  assert.deepEqual(agent.gateway.applied, [update]);
  assert.deepEqual(coordinator.gateway, [], "an unknown state is not reported");
  const status = GatewayStatus.fromPartial({ ready: true, proxyVersion: "1", version: 3n });
  agent.gateway.become(status);
  await until("the state is reported", () => coordinator.gateway.length === 1);
  await coordinator.close();
  const { authority, port } = coordinator;
  const again = await startCoordinator(t, { authority, port });
  await until("the state is reported to the next coordinator", () => again.gateway.length === 1);
  assert.deepEqual([coordinator.gateway, again.gateway], [[status], [status]]);
});

test("passes on claims to remove, and reports their removal", async (t) => {
  const coordinator = await startCoordinator(t);
  const agent = await LinkUnderTest.start(t, coordinator, coordinator.mintToken());
  await until("connected", () => agent.link.state.kind === "connected" && coordinator.connections === 1);
  const claim = { namespace: "shop", name: "db" };
  coordinator.sendDelta({ revision: coordinator.revision + 1n, claimRemovals: [claim] });
  await until("asked", () => agent.claimRemovals.length === 1);
  assert.deepEqual(agent.claimRemovals, ["shop/db"]);
  agent.link.claimRemoved(claim);
  await until("the removal is reported", () => coordinator.claimsRemoved.length === 1);
  assert.deepEqual(coordinator.claimsRemoved, [claim]);
});

/** A clock for timers of the test, set to the time of new certificates. */
function aClock(): VirtualClock {
  const clock = new VirtualClock();
  clock.jumpWall(Date.now() - clock.nowMs());
  return clock;
}
