import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bytes, put, rejectsWith } from "../../src/store/conformance/fixture.ts";
import { RESTORE_REVISION_GAP } from "../../src/store/format/restored.ts";
import { restoreLevelStore } from "../../src/store/index.ts";
import { contentsOf, makeSample, openSample, tempDir } from "./sample-store.ts";

test("contains exactly one revision in a backup made during writes, and restores it", async (t) => {
  const root = tempDir(t);
  const [dir, file, to] = [join(root, "store"), join(root, "backup"), join(root, "restored")];
  await makeSample(dir, "closed");
  const store = await openSample(dir);
  const lease = await store.lease(60_000);
  await store.txn([], [{ type: "put", key: "leased", value: bytes("x"), lease: lease.id }]);
  // Both halves are always equal, so a backup of two revisions would be detected.
  const pair = (i: number) => store.txn([], [put("left", `${i}`), put("right", `${i}`)]);
  const writes = Array.from({ length: 50 }, (_, i) => pair(i));
  const backup = store.backup(file);
  for (let i = 50; i < 100; i++) writes.push(pair(i));
  const info = await backup;
  await Promise.all(writes);
  const then = await store.range("", { at: info.revision });
  await store.close();

  assert.equal(info.records, then.records.length);
  assert.equal(info.store, store.id);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(!existsSync(`${file}.partial`));

  const result = await restoreLevelStore({ dir: to, file });
  assert.deepEqual(result, { backup: info, revision: info.revision + RESTORE_REVISION_GAP, epoch: 2 });
  const restored = await openSample(to);
  const now = await restored.range("");
  assert.deepEqual(
    now.records.map((record) => ({ ...record, value: Buffer.from(record.value).toString() })),
    then.records.map((record) => ({ ...record, value: Buffer.from(record.value).toString() })),
  );
  assert.deepEqual([restored.id, restored.epoch, restored.revision], [store.id, 2, result.revision]);
  assert.notEqual(restored.lineage, store.lineage);
  assert.equal((await restored.get("leased"))?.lease, lease.id);
  await (await restored.findLease(lease.id)).revoke();
  await rejectsWith(
    "COMPACTED",
    restored
      .watch("", info.revision + 1, new AbortController().signal)
      [Symbol.asyncIterator]()
      .next(),
  );
  assert.equal((await restored.txn([], [put("a")])).revision, result.revision + 2);
  await restored.verify();
  await restored.close();
  const again = await openSample(to);
  assert.equal(again.revision, result.revision + 2);
  await again.close();
});

test("refuses a backup with any changed byte, and restores nothing", async (t) => {
  const root = tempDir(t);
  const [dir, file] = [join(root, "store"), join(root, "backup")];
  const store = await openSample(dir);
  for (let i = 0; i < 20; i++) await store.txn([], [put(`k${i}`, "some value or other")]);
  await store.backup(file);
  await store.close();
  const good = readFileSync(file);
  const to = join(root, "restored");
  for (let at = 0; at < good.length; at += 7) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 0x10;
    writeFileSync(file, bad);
    await rejectsWith("CORRUPT", restoreLevelStore({ dir: to, file }));
  }
  for (const length of [0, 10, 40, good.length - 70, good.length - 1]) {
    writeFileSync(file, good.subarray(0, length));
    await rejectsWith("CORRUPT", restoreLevelStore({ dir: to, file }));
  }
  writeFileSync(file, Buffer.concat([good, Buffer.from("x")]));
  await rejectsWith("CORRUPT", restoreLevelStore({ dir: to, file }));
  assert.ok(!existsSync(to));
  writeFileSync(file, good);
  assert.equal((await restoreLevelStore({ dir: to, file })).backup.records, 20);
});

test("backs up and restores an empty store", async (t) => {
  const root = tempDir(t);
  const store = await openSample(join(root, "store"));
  await store.backup(join(root, "backup"));
  await store.close();
  await restoreLevelStore({ dir: join(root, "restored"), file: join(root, "backup"), epoch: 77 });
  const restored = await openSample(join(root, "restored"));
  assert.deepEqual([...(await contentsOf(restored)).values], []);
  assert.equal(restored.epoch, 77);
  await restored.close();
});

test("overwrites nothing", async (t) => {
  const root = tempDir(t);
  const [dir, file] = [join(root, "store"), join(root, "backup")];
  const store = await openSample(dir);
  await store.txn([], [put("a")]);
  await store.backup(file);
  await rejectsWith("NOT_EMPTY", store.backup(file));
  await rejectsWith("IO_ERROR", store.backup(join(root, "missing", "backup")));
  await rejectsWith("NOT_EMPTY", restoreLevelStore({ dir, file }));
  await rejectsWith("INVALID_ARGUMENT", restoreLevelStore({ dir: join(root, "new"), file, epoch: 1 }));
  await rejectsWith("IO_ERROR", restoreLevelStore({ dir: join(root, "new"), file: join(root, "none") }));
  await store.close();
  mkdirSync(join(root, "full"));
  writeFileSync(join(root, "full", "something"), "");
  await rejectsWith("NOT_EMPTY", restoreLevelStore({ dir: join(root, "full"), file }));
  assert.deepEqual(readdirSync(join(root, "full")), ["something"]);
});

test("does not open after an interrupted restore", async (t) => {
  const root = tempDir(t);
  const [dir, file, to] = [join(root, "store"), join(root, "backup"), join(root, "restored")];
  await makeSample(dir, "closed");
  const store = await openSample(dir);
  await store.backup(file);
  await store.close();
  await restoreLevelStore({ dir: to, file });
  // The same state as if the restore had ended just before its last step.
  unlinkSync(join(to, "HEAD"));
  await rejectsWith("CORRUPT", openSample(to));
});
