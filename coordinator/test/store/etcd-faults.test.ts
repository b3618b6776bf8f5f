import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { type EtcdServer, startEtcd, startEtcdCluster } from "../../../hack/lib/etcd-server.ts";
import { TcpRelay } from "../../../hack/lib/tcp-relay.ts";
import { checkHistory } from "../../src/store/conformance/check-history.ts";
import { bytes, contents, put, rejectsWith, until } from "../../src/store/conformance/fixture.ts";
import { runClient } from "../../src/store/conformance/random-client.ts";
import { followRandomly } from "../../src/store/conformance/random-watcher.ts";
import { type Call, Recorder } from "../../src/store/conformance/recorder.ts";
import { PART_BYTES_MAX, putsOf } from "../../src/store/etcd/layout.ts";
import type { Store } from "../../src/store/index.ts";
import { connectEtcd, crashing, endLead, lossy, openStore as openUnowned } from "./etcd-bench.ts";
import { STEPS, stateOf, takeSteps } from "./etcd-steps.ts";

/**
 * The time limit of writes, longer than any fault here, because a write with an unknown result
 * can't be checked.
 */
const PATIENT_MS = 120_000;
let server: EtcdServer;
let prefixes = 0;
const stores: Store[] = [];

before(async () => {
  server = await startEtcd();
});

after(async () => {
  // A store that a failed test left open would keep the process alive.
  await Promise.all(stores.map((store) => store.close()));
  await server.close();
});

test("has a linearizable history while the member is killed, paused and restarted", async () => {
  const store = await open(connect(), { writeWaitMs: PATIENT_MS });
  const faults = async (): Promise<void> => {
    await until(() => store.revision > 20, "the clients write");
    await server.kill();
    await server.start();
    const killedAt = store.revision;
    await until(() => store.revision > killedAt + 20, "the clients write again");
    server.pause();
    // Longer than a call may take: calls must fail without the member's knowledge.
    await until(() => store.health().status !== "ok" || waitedFor(3_500), "calls have failed", 20_000);
    server.resume();
  };
  const waitedFor = waiting();
  await checkedHistory(store, 1, 250, faults);
  await store.verify();
  await store.close();
});

test("has a linearizable history while one of three members is killed, paused and disconnected", async (t) => {
  const members = await startEtcdCluster(3);
  t.after(() => Promise.all(members.map((member) => member.close())));
  const ways = await Promise.all(members.map(({ endpoint }) => TcpRelay.start(() => addressOf(endpoint))));
  t.after(() => Promise.all(ways.map((way) => way.close())));
  const etcd = connectEtcd(
    ways.map(({ address }) => `http://${address}`),
    "/three/",
  );
  const store = await open(etcd, { writeWaitMs: PATIENT_MS });
  let stopped = false;
  const gaps = longestGap(store, () => stopped);
  const faults = async (): Promise<void> => {
    const [killed, paused] = members;
    const [, , cut] = ways;
    const goesOn = async (what: string): Promise<void> => {
      const at = store.revision;
      await until(() => store.revision > at + 20, `the clients write while ${what}`, PATIENT_MS);
    };
    await killed?.kill();
    await goesOn("a member is gone");
    await killed?.start();
    paused?.pause();
    await goesOn("a member is paused");
    paused?.resume();
    cut?.cut();
    await goesOn("a member can't be reached");
    cut?.mend();
    await goesOn("all members are back");
    stopped = true;
  };
  await checkedHistory(store, 2, () => !stopped, faults);
  t.diagnostic(`longest time without a revision: ${Math.round(await gaps)} ms`);
  await store.verify();
  await store.close();
});

test("has a linearizable history while requests and answers are lost", async () => {
  for (const seed of [1, 2, 3]) {
    const store = await open(lossy(connect(), randomOf(seed), 4), { writeWaitMs: PATIENT_MS });
    await checkedHistory(store, seed, 30);
    await store.verify();
    await store.close();
  }
});

test("fails writes without etcd with the reason, continues reads, and recovers", async () => {
  const store = await open(connect(), { writeWaitMs: 300 });
  await store.txn([], [put("a", "1")]);
  await server.kill();
  const unconfirmed = await rejectsWith("UNCONFIRMED", store.txn([], [put("a", "2")]));
  assert.match(unconfirmed.message, /^etcd has not answered for \d+ s: .*may still be made/);
  await rejectsWith("UNAVAILABLE", store.txn([], [put("a", "3")]));
  const health = store.health();
  assert.ok(health.status === "read-only" && health.reason === "unavailable");
  assert.match(health.message, /^etcd has not answered for \d+ s: http:\/\/127\.0\.0\.1:\d+: /);
  assert.deepEqual(await contents(store), { a: "1" });
  await until(() => store.leadIsConfirmed === false, "it may deny nothing any more", PATIENT_MS);
  await server.start();
  await until(() => store.health().status === "ok", "etcd answers", PATIENT_MS);
  await until(() => store.revision === 2, "the unconfirmed write is made", PATIENT_MS);
  await until(() => store.leadIsConfirmed === true, "it confirms that it leads", PATIENT_MS);
  await store.txn([{ type: "value", key: "a", value: bytes("2") }], [put("a", "4")]);
  assert.deepEqual(await contents(store), { a: "4" });
  await store.close();
});

test("lets one coordinator lead while the next one waits, and fences the first one off", async () => {
  const prefix = nextPrefix();
  const direct = connect(prefix);
  const first = await open(connect(prefix));
  await first.txn([], [put("a", "1")]);
  const seen: string[] = [];
  const waiting = open(connect(prefix), { holder: "b", onStandby: ({ name }) => seen.push(name) });
  await until(() => seen.length > 0, "the second one waits");
  assert.equal(seen[0], "host-a");
  await endLead(direct);
  const second = await waiting;
  assert.deepEqual(await contents(second), { a: "1" });
  const refused = await rejectsWith("LEAD_LOST", first.txn([], [put("a", "2")]));
  assert.match(refused.message, /this coordinator has lost the lead: host-b leads/);
  const health = first.health();
  assert.ok(health.status === "read-only" && health.reason === "lead-lost");
  await until(() => first.leadIsConfirmed === false, "the first one can't confirm that it leads");
  assert.equal(second.leadIsConfirmed, true);
  await second.txn([], [put("b", "1")]);
  await first.close();
  await second.close();
  const third = await open(connect(prefix), { holder: "c" });
  assert.deepEqual(await contents(third), { a: "1", b: "1" });
  await third.close();
  direct.close();
});

test("renews an expired lease while no other coordinator has led", async () => {
  const prefix = nextPrefix();
  const direct = connect(prefix);
  const store = await open(connect(prefix));
  await endLead(direct);
  await store.txn([], [put("a", "1")]);
  await endLead(direct);
  // The lease is renewed even without a write.
  await until(async () => (await direct.range({ from: "m/leader" })).records.length > 0, "it leads again");
  await store.txn([], [put("a", "2")]);
  await store.close();
  direct.close();
});

test("does not apply the rest of an incomplete large write with a later one", async () => {
  const prefix = nextPrefix();
  const store = await open(connect(prefix));
  await store.txn([], [put("a", "1")]);
  await store.close();
  const direct = connect(prefix);
  const rest = putsOf("l/0000000000000002", Buffer.alloc(2.5 * PART_BYTES_MAX, "x"));
  await direct.txn({ compares: [], ops: rest.slice(-1) });
  direct.close();
  const next = await open(connect(prefix));
  await next.txn([], [put("a", "2")]);
  await next.close();
  const again = await open(connect(prefix));
  assert.deepEqual(await contents(again), { a: "2" });
  await again.close();
});

test("applies a change completely or not at all when the process ends at any transaction", async () => {
  let folds = 0;
  for (let at = 1; ; at++) {
    const prefix = nextPrefix();
    const etcd = crashing(connect(prefix), at, at % 2 === 0 ? "before" : "after");
    const acknowledged = await takeSteps(etcd, open);
    if (!etcd.crashed) {
      assert.ok(at > 15, "the work takes many transactions");
      break;
    }
    const direct = connect(prefix);
    if ((await direct.range({ from: "m/fold" })).records.length > 0) folds++;
    direct.close();
    const reopened = await open(connect(prefix));
    const found = await stateOf(reopened);
    const allowed = STEPS.slice(acknowledged, acknowledged + 2).map(({ state }) => state);
    assert.ok(allowed.includes(found), `after ${acknowledged} steps, ended at ${at}: ${found}`);
    await reopened.verify();
    await reopened.txn([], [put("more")]);
    await reopened.compact(reopened.revision);
    await reopened.close();
    const again = await open(connect(prefix));
    assert.ok((await stateOf(again)).startsWith(found));
    await again.close();
  }
  assert.ok(folds > 0, "a fold was cut off");
});

/**
 * Runs clients and watchers, with concurrent faults, until each client has made its calls or must
 * end, and checks the history.
 */
async function checkedHistory(
  store: Store,
  seed: number,
  calls: number | (() => boolean),
  faults: () => Promise<void> = async () => {},
): Promise<void> {
  const recorder = new Recorder();
  const stop = new AbortController();
  const random = randomOf(seed);
  const watchers = ["", "a/"].map((prefix) =>
    followRandomly(store, prefix, randomOf(random.below(2 ** 31)), stop.signal),
  );
  const clients = Array.from({ length: 6 }, async (_, client) => {
    const own = randomOf(random.below(2 ** 31));
    if (typeof calls === "number") return runClient(store, recorder, own, client, calls);
    for (let round = 0; calls(); round++) await runClient(store, recorder, own, client + 10 * round, 10);
  });
  await Promise.all([...clients, faults()]);
  const ops = [put("a/end")];
  const mark = async (): Promise<Call> => ({
    type: "txn",
    compares: [],
    ops,
    result: await store.txn([], ops),
  });
  await recorder.record(mark, () => store.revision);
  const logs = await Promise.all(watchers.map((watcher) => watcher.finish(store.revision)));
  stop.abort();
  checkHistory(recorder.calls, logs.flat());
}

function addressOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}

async function longestGap(store: Store, isOver: () => boolean): Promise<number> {
  let [revision, atMs, longestMs] = [store.revision, performance.now(), 0];
  await until(
    () => {
      if (store.revision !== revision) [revision, atMs] = [store.revision, performance.now()];
      longestMs = Math.max(longestMs, performance.now() - atMs);
      return isOver();
    },
    "the faults are over",
    PATIENT_MS,
  );
  return longestMs;
}

function waiting(): (ms: number) => boolean {
  let startMs: number | undefined;
  return (ms) => {
    startMs ??= performance.now();
    return performance.now() - startMs > ms;
  };
}

async function open(...options: Parameters<typeof openUnowned>) {
  const store = await openUnowned(...options);
  stores.push(store);
  return store;
}

function nextPrefix(): string {
  return `/fault-${++prefixes}/`;
}

function connect(prefix = nextPrefix()) {
  return connectEtcd(server.endpoint, prefix);
}
