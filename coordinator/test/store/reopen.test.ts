import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { VirtualClock } from "@forage/common/virtual-clock";
import { nextBatches, print, put, rejectsWith, until } from "../../src/store/conformance/fixture.ts";
import { type LevelStoreOptions, openLevelStore, type StoreError } from "../../src/store/index.ts";
import { flipLiveRecords } from "./damage.ts";
import { contentsOf, makeSample, openSample, tempDir } from "./sample-store.ts";

const WRITER = new URL("crash-writer.ts", import.meta.url).pathname;

test("continues at its revision with its history when it is reopened", async (t) => {
  const dir = join(tempDir(t), "store");
  const first = await open(dir);
  for (let i = 1; i <= 30; i++) await first.txn([], [put(`k${i % 3}`, `${i}`)]);
  await first.txn([], [{ type: "delete", key: "k1" }]);
  await first.compact(10);
  await first.close();

  const second = await open(dir);
  assert.equal(second.id, first.id);
  assert.equal(second.epoch, 1);
  assert.equal(second.lineage, first.lineage);
  assert.notEqual(second.lineage, second.id);
  assert.deepEqual([second.compactRevision, second.revision], [10, 31]);
  assert.deepEqual(
    [...(await contentsOf(second)).values],
    [
      ["k0", "30"],
      ["k2", "29"],
    ],
  );
  assert.equal(Buffer.from((await second.get("k1", { at: 20 }))?.value ?? []).toString(), "19");
  const watch = second.watch("", 30, new AbortController().signal)[Symbol.asyncIterator]();
  assert.deepEqual((await nextBatches(watch, 2)).map(print), ["30 +k0=30", "31 -k1"]);
  await rejectsWith("COMPACTED", second.get("k1", { at: 9 }));
  const record = await second.get("k2");
  assert.deepEqual([record?.createRevision, record?.modRevision, record?.version], [2, 29, 10]);
  assert.equal((await second.txn([], [put("k1")])).revision, 32);
  await second.close();
});

test("restarts the duration of leases after a reopening, and does not reuse their ids", async (t) => {
  const dir = join(tempDir(t), "store");
  const first = await open(dir);
  const [used, unused] = [await first.lease(1000), await first.lease(1000)];
  await first.txn([], [{ type: "put", key: "leader", value: Buffer.from("a"), lease: used.id }]);
  await first.close();

  const clock = new VirtualClock();
  const second = await open(dir, { clock });
  await rejectsWith("LEASE_NOT_FOUND", second.findLease(unused.id));
  const granted = await second.lease(1000);
  assert.ok(granted.id !== used.id && granted.id !== unused.id);
  const found = await second.findLease(used.id);
  clock.advance(900);
  await found.keepAlive();
  clock.advance(900);
  assert.ok(await second.get("leader"));
  clock.advance(100);
  await until(() => second.revision === 2, "the lease ends");
  assert.equal(await second.get("leader"), undefined);
  await second.close();
});

test("refuses a second opening, and keeps the lock for other processes", async (t) => {
  const dir = join(tempDir(t), "store");
  const store = await open(dir);
  await rejectsWith("LOCKED", open(dir));
  await rejectsWith("LOCKED", open(dir));
  const child = spawn(process.execPath, [WRITER, dir, "1"], { stdio: ["ignore", "ignore", "pipe"] });
  const complaint = child.stderr.setEncoding("utf8").toArray();
  const [code] = await once(child, "close");
  assert.equal(code, 1);
  assert.match((await complaint).join(""), /LOCKED/);
  // Between network namespaces the first guard has no effect, and LevelDB's lock works, more than
  // once.
  if (process.getuid?.() === 0) {
    for (let attempt = 0; attempt < 2; attempt++) assert.match(await complaintApart(dir), /LOCKED/);
  }
  await store.txn([], [put("a")]);
  await store.verify();
  await store.close();
  const again = await open(dir);
  assert.equal(again.revision, 1);
  await again.close();
});

test("makes its files readable only by their owner", async (t) => {
  const dir = join(tempDir(t), "store");
  const store = await open(dir);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.equal(statSync(join(dir, "HEAD")).mode & 0o777, 0o600);
  await store.close();
});

test("leaves nothing after an interrupted opening that prevents the next", async (t) => {
  const dir = join(tempDir(t), "store");
  const contents = await makeSample(dir, "killed");
  const store = await openSample(dir);
  assert.deepEqual(await contentsOf(store), contents);
  await store.close();
  assert.ok(!existsSync(join(dir, "db.before-open")));
});

test("detects changes on disk by verify while it serves", async (t) => {
  const dir = join(tempDir(t), "store");
  await makeSample(dir, "closed");
  const store = await openSample(dir);
  await store.verify();
  flipLiveRecords(dir);
  const error: StoreError = await rejectsWith("CORRUPT", store.verify());
  assert.match(error.message, /record "[kos]\/\d+": its checksum.*make a backup now/);
  await store.close();
});

test("writes the newest revision to a readable HEAD", async (t) => {
  const dir = join(tempDir(t), "store");
  const store = await open(dir);
  for (let i = 0; i < 5; i++) await store.txn([], [put("a", `${i}`)]);
  assert.match(readFileSync(join(dir, "HEAD"), "latin1"), new RegExp(`"store":"${store.id}","revision":5,`));
  await store.close();
});

test("shares a sync among writes of one turn", async (t) => {
  const dir = join(tempDir(t), "store");
  const store = await open(dir);
  const writes = Array.from({ length: 500 }, (_, i) => store.txn([], [put(`k${i}`)]));
  // The first batch contains all writes: they become durable together.
  await Promise.race(writes);
  assert.equal(store.revision, 500);
  await Promise.all(writes);
  await store.close();
});

/**
 * Returns the message of a writer that starts in its own network namespace. Kills the writer if it
 * starts writing.
 */
async function complaintApart(dir: string): Promise<string> {
  const run = promisify(execFile)("unshare", ["--net", process.execPath, WRITER, dir, "1"], {
    timeout: 60_000,
  });
  const outcome: unknown = await run.catch((error: unknown) => error);
  return outcome instanceof Error && "stderr" in outcome ? String(outcome.stderr) : "it did not fail";
}

function open(dir: string, options: Partial<LevelStoreOptions> = {}): ReturnType<typeof openLevelStore> {
  return openLevelStore({ dir, clock: new VirtualClock(), ballastBytes: 4096, ...options });
}
