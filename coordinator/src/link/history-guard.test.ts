import assert from "node:assert/strict";
import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { openLevelStore, restoreLevelStore } from "../store/index.ts";
import { systemClock } from "../time/clock.ts";
import { assignmentRevision } from "./assignment-revision.ts";
import { HistoryGuard } from "./history-guard.ts";

test("detects an old copy of the store, even if it has as many revisions again", async (t) => {
  const { dir, begin } = await aDirectory(t);
  const first = await begin();
  await first.write(5);
  await first.end();
  await cp(join(dir, "store"), join(dir, "copy"), { recursive: true });
  const second = await begin();
  await second.write(5);
  const seen = second.seen();
  await second.end();
  await rm(join(dir, "store"), { recursive: true });
  await cp(join(dir, "copy"), join(dir, "store"), { recursive: true });
  const third = await begin();
  await third.write(100);
  assert.equal(third.guard.refusal, undefined);
  third.guard.check("n1", seen);
  assert.match(third.guard.refusal ?? "", /^node n1 has received later data .* restore FILE --epoch 2`$/);
  await assert.rejects(third.guard.guarded().txn([], []), { code: "FAILED_PRECONDITION" });
  await third.end();
  const fourth = await begin();
  assert.ok(fourth.guard.refusal, "it is on record");
});

test("detects an old copy of a store that was written before its first recorded start", async (t) => {
  const { dir, begin, write } = await aDirectory(t);
  await write();
  const first = await begin();
  await first.end();
  await cp(join(dir, "store"), join(dir, "copy"), { recursive: true });
  const second = await begin();
  const seen = second.seen();
  await second.end();
  await rm(join(dir, "store"), { recursive: true });
  await cp(join(dir, "copy"), join(dir, "store"), { recursive: true });
  const third = await begin();
  await third.write(100);
  third.guard.check("n1", seen);
  assert.ok(third.guard.refusal);
});

test("compares revisions only, if the history no longer contains a node's start", async (t) => {
  const { begin } = await aDirectory(t);
  const first = await begin();
  const seen = first.seen();
  for (let start = 0; start < 500; start++) await first.startAgain();
  const last = await first.startAgain();
  last.check("n1", seen);
  assert.equal(last.refusal, undefined);
});

test("detects a copy that was made during a start, by the later revisions of that start", async (t) => {
  const { dir, begin } = await aDirectory(t);
  const first = await begin();
  await first.write(5);
  await first.end();
  await cp(join(dir, "store"), join(dir, "copy"), { recursive: true });
  const second = await begin();
  const kept = first.seen();
  second.guard.check("n1", kept);
  assert.equal(second.guard.refusal, undefined, "all of the first start is there");
  const revision = kept.revision + 1n;
  second.guard.check("n1", { lineage: first.guard.markFor("n1", revision), revision });
  assert.ok(second.guard.refusal);
});

test("ignores a node's later revision without the coordinator's signature for that node", async (t) => {
  const { begin } = await aDirectory(t);
  const { guard, write, seen } = await begin();
  await write(5);
  const { lineage } = seen();
  const [store = "", start = "", signature = ""] = lineage.split("/");
  const revision = seen().revision + 1_000_000n;
  const claims = [
    { lineage: "", revision },
    { lineage: guard.lineage, revision },
    { lineage, revision },
    { lineage: `${store}/another-start/${signature}`, revision: seen().revision },
    { lineage: `${store}/${start}/${"A".repeat(43)}`, revision },
    { lineage, revision: assignmentRevision(99, 1) },
    { lineage: guard.markFor("n2", revision), revision },
  ];
  for (const claim of claims) guard.check("n1", claim);
  assert.equal(guard.refusal, undefined);
  guard.check("n1", { lineage: guard.markFor("n1", revision), revision });
  assert.ok(guard.refusal);
});

test("accepts agents with later revisions after an intentional restore", async (t) => {
  const { dir, begin } = await aDirectory(t);
  const first = await begin();
  await first.write(5);
  const file = join(dir, "backup");
  await first.store.backup(file);
  await first.write(50);
  const seen = first.seen();
  const ahead = seen.revision + 1_000n;
  first.guard.check("n1", { lineage: first.guard.markFor("n1", ahead), revision: ahead });
  assert.ok(first.guard.refusal);
  await first.end();
  await rm(join(dir, "store"), { recursive: true });
  await restoreLevelStore({ dir: join(dir, "store"), file });
  const second = await begin();
  second.guard.check("n1", seen);
  assert.equal(second.guard.refusal, undefined);
});

test("detects a copy from before an intentional restore", async (t) => {
  const { dir, begin } = await aDirectory(t);
  const first = await begin();
  const file = join(dir, "backup");
  await first.store.backup(file);
  await first.end();
  await rename(join(dir, "store"), join(dir, "copy"));
  await restoreLevelStore({ dir: join(dir, "store"), file });
  const second = await begin();
  const seen = second.seen();
  await second.end();
  await rm(join(dir, "store"), { recursive: true });
  await rename(join(dir, "copy"), join(dir, "store"));
  const third = await begin();
  await third.write(100);
  third.guard.check("n1", seen);
  assert.match(third.guard.refusal ?? "", /restore FILE --epoch 3`$/);
});

test("accepts normal restarts, and agents with older state or none", async (t) => {
  const { begin } = await aDirectory(t);
  const seen = [{ lineage: "", revision: 0n }];
  for (let start = 0; start < 3; start++) {
    const { guard, write, seen: seenNow, end } = await begin();
    for (const it of seen) guard.check("n1", it);
    await write(3);
    seen.push(seenNow(), { ...seenNow(), lineage: "" });
    for (const it of seen) guard.check("n1", it);
    assert.equal(guard.refusal, undefined);
    await end();
  }
});

async function aDirectory(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "history-"));
  const open = new Set<() => Promise<void>>();
  t.after(async () => {
    for (const end of open) await end();
    await rm(dir, { recursive: true });
  });
  let names = 0;
  const begin = async () => {
    const store = await openLevelStore({ dir: join(dir, "store"), clock: systemClock });
    const { epoch, lineage } = store;
    const startAgain = () =>
      HistoryGuard.open({
        store,
        epoch,
        lineage,
        secrets: () => [Buffer.alloc(32, 1)],
        log: pino({ level: "silent" }),
        events: { record: () => {} },
        randomName: () => `start-${++names}`,
      });
    const guard = await startAgain();
    const end = async (): Promise<void> => {
      open.delete(end);
      await store.close();
    };
    open.add(end);
    const write = async (times: number): Promise<void> => {
      for (let time = 0; time < times; time++)
        await store.txn([], [{ type: "put", key: `key-${time}`, value: Uint8Array.of(time, names) }]);
    };
    const seen = () => {
      const revision = assignmentRevision(epoch, store.revision);
      return { lineage: guard.markFor("n1", revision), revision };
    };
    return { store, guard, end, write, seen, startAgain };
  };
  /** Writes a record, as the coordinator does before it reads its history. */
  const write = async (): Promise<void> => {
    const store = await openLevelStore({ dir: join(dir, "store"), clock: systemClock });
    await store.txn([], [{ type: "put", key: "key", value: Uint8Array.of(1) }]);
    await store.close();
  };
  return { dir, begin, write };
}
