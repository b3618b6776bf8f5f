import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type EtcdServer, startEtcd } from "../../../hack/lib/etcd-server.ts";
import { contents, put, rejectsWith, until } from "../../src/store/conformance/fixture.ts";
import type { Etcd } from "../../src/store/etcd/etcd.ts";
import { type FollowedStore, followEtcdStore } from "../../src/store/etcd/etcd-follower.ts";
import type { Store } from "../../src/store/index.ts";
import { connectEtcd, crashing, endLead, openStore, storeOptions } from "./etcd-bench.ts";
import { STEPS, stateOf, takeSteps } from "./etcd-steps.ts";

let server: EtcdServer;
let prefixes = 0;
const stores: Store[] = [];

before(async () => {
  server = await startEtcd();
});

after(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server.close();
});

test("reads and watches the leader's writes, and refuses writes", async () => {
  const prefix = nextPrefix();
  const leader = await open(connect(prefix));
  await leader.txn([], [put("a", "1")]);
  const follower = await follow(connect(prefix));
  assert.deepEqual(await contents(follower), { a: "1" });
  const stop = new AbortController();
  const watch = follower.watch("", 2, stop.signal)[Symbol.asyncIterator]();
  await leader.txn([], [put("a", "2"), put("b", "1")]);
  const { value: batch } = await watch.next();
  assert.deepEqual([batch.revision, batch.events.length], [2, 2]);
  assert.deepEqual(await contents(follower), { a: "2", b: "1" });
  const refused = await rejectsWith("UNAVAILABLE", follower.txn([], [put("a", "3")]));
  assert.match(refused.message, /leads, and only the leader writes/);
  await rejectsWith("UNAVAILABLE", follower.lease(1_000));
  stop.abort();
});

test("drops history like the leader", async () => {
  const prefix = nextPrefix();
  const leader = await open(connect(prefix));
  const follower = await follow(connect(prefix));
  for (const value of ["1", "2", "3"]) await leader.txn([], [put("a", value)]);
  await until(() => follower.revision === 3, "the follower follows");
  await leader.compact(2);
  await until(() => follower.compactRevision === 2, "the follower compacts");
  await rejectsWith("COMPACTED", follower.get("a", { at: 1 }));
});

test("takes over with its watches, and fences the former leader off", async () => {
  const prefix = nextPrefix();
  const direct = connect(prefix);
  const first = await open(connect(prefix));
  await first.txn([], [put("a", "1")]);
  const follower = await follow(connect(prefix));
  const seen: string[] = [];
  const leading = follower.lead(({ name }) => seen.push(name));
  await until(() => seen.length > 0, "the follower sees the leader");
  assert.deepEqual(seen, ["host-a"]);
  const stop = new AbortController();
  const watch = follower.watch("", 2, stop.signal)[Symbol.asyncIterator]();
  await endLead(direct);
  await leading;
  const refused = await rejectsWith("LEAD_LOST", first.txn([], [put("a", "2")]));
  assert.match(refused.message, /this coordinator has lost the lead: host-b leads/);
  await follower.txn([], [put("b", "1")]);
  const lease = await follower.lease(60_000);
  await follower.txn([], [{ type: "put", key: "c", value: Buffer.from("1"), lease: lease.id }]);
  await lease.revoke();
  assert.equal((await watch.next()).value.revision, 2);
  assert.equal(follower.behindMs, 0);
  await follower.compact(follower.revision);
  await follower.verify();
  await follower.close();
  const again = await open(connect(prefix), "c");
  assert.deepEqual(await contents(again), { a: "1", b: "1" });
  stop.abort();
  direct.close();
});

test("follows the next leader, and fails when the store is deleted", async () => {
  const prefix = nextPrefix();
  const first = await open(connect(prefix));
  await first.txn([], [put("a", "1")]);
  const follower = await follow(connect(prefix));
  await first.close();
  const next = await open(connect(prefix), "c");
  await next.txn([], [put("a", "2")]);
  await until(() => follower.revision === 2, "the follower follows");
  const leading = follower.lead(() => {});
  const refused = rejectsWith("IO_ERROR", leading);
  const direct = connect(prefix);
  await direct.txn({ compares: [], ops: [{ type: "delete", from: "m/head" }] });
  await refused;
  const health = follower.health();
  assert.ok(health.status === "read-only" && health.reason === "io-error");
  assert.match(health.message, /the store can't be followed: the store in etcd no longer exists/);
  assert.deepEqual(await contents(follower), { a: "2" });
  direct.close();
});

test("takes over when the leader ends at any transaction", async () => {
  for (let at = 2; ; at += 3) {
    const prefix = nextPrefix();
    const made = await open(connect(prefix));
    await made.close();
    const follower = await follow(connect(prefix));
    const etcd = crashing(connect(prefix), at, at % 2 === 0 ? "before" : "after");
    const followed = (store: Store): Promise<void> =>
      until(() => follower.revision === store.revision, "the follower has the log that a fold removes");
    const acknowledged = await takeSteps(etcd, (connected) => open(connected), followed);
    if (!etcd.crashed) return;
    const direct = connect(prefix);
    const leading = follower.lead(() => {});
    await endLead(direct);
    await leading;
    const found = await stateOf(follower);
    const allowed = STEPS.slice(acknowledged, acknowledged + 2).map(({ state }) => state);
    assert.ok(allowed.includes(found), `after ${acknowledged} steps, ended at ${at}: ${found}`);
    await follower.verify();
    await follower.txn([], [put("more")]);
    await follower.compact(follower.revision);
    await follower.close();
    const again = await open(connect(prefix));
    assert.ok((await stateOf(again)).startsWith(found));
    await again.close();
    direct.close();
  }
});

async function open(etcd: Etcd, holder = "a") {
  const store = await openStore(etcd, { holder });
  stores.push(store);
  return store;
}

async function follow(etcd: Etcd, holder = "b"): Promise<FollowedStore> {
  const store = await followEtcdStore(storeOptions(etcd, { holder }));
  stores.push(store);
  return store;
}

function nextPrefix(): string {
  return `/follow-${++prefixes}/`;
}

function connect(prefix: string) {
  return connectEtcd(server.endpoint, prefix);
}
