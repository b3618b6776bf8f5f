/**
 * The disk-full test runs this program in its own mount namespace: `disk-full-scenario.ts DIR`. DIR
 * is a file system of 48 MiB. Fails with an uncaught assertion if the store does not behave as
 * expected.
 */
import assert from "node:assert/strict";
import { closeSync, existsSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@forage/common/clock";
import { put, rejectsWith, until } from "../../src/store/conformance/fixture.ts";
import { openLevelStore, type Store } from "../../src/store/index.ts";

const MIB = 1024 * 1024;
const BALLAST_BYTES = 12 * MIB;
const dir = process.argv[2] ?? "";
const files = { store: join(dir, "store"), filler: join(dir, "filler") };

await readOnlyBelowTheWatermark();
await survivesAFullDisk();

/**
 * Tests free space below the watermark: the store refuses writes, stays readable, and recovers by
 * itself when space is freed.
 */
async function readOnlyBelowTheWatermark(): Promise<void> {
  const store = await open(8 * MIB);
  assert.ok(existsSync(join(files.store, "ballast")));
  await store.txn([], [put("a", "1")]);
  fill(freeBytes() - 6 * MIB);
  await until(() => store.health().status === "read-only", "the lack of space is noticed");
  assert.match(JSON.stringify(store.health()), /"no-space".*only \d MiB are free/);
  await rejectsWith("NO_SPACE", store.txn([], [put("a", "2")]));
  assert.ok(await store.get("a"));
  rmSync(files.filler);
  await until(() => store.health().status === "ok", "the space is noticed");
  await store.txn([], [put("a", "2")]);
  await store.close();
}

/**
 * Tests a full disk without the watermark: a write fails, nothing acknowledged is lost, and the
 * store opens on the full disk.
 */
async function survivesAFullDisk(): Promise<void> {
  const store = await open(0);
  fill(freeBytes() - 2 * MIB);
  let acknowledged = 0;
  const value = "v".repeat(100_000);
  const error = await rejectsWith(
    "IO_ERROR",
    (async () => {
      for (;;) {
        await store.txn([], [put(`k${acknowledged}`, value)]);
        acknowledged++;
      }
    })(),
  );
  assert.match(error.message, /No space left/);
  assert.ok(acknowledged > 5);
  assert.match(JSON.stringify(store.health()), /"io-error"/);
  await rejectsWith("IO_ERROR", store.txn([], [put("b")]));
  await checkAll(store, acknowledged);
  await store.close();

  fill(freeBytes());
  const reopened = await open(8 * MIB);
  assert.equal(reopened.health().status, "ok", "the ballast's space is enough to go on a little");
  await checkAll(reopened, acknowledged);
  await reopened.txn([], [put("b")]);
  rmSync(files.filler);
  await reopened.close();
  const last = await open(8 * MIB);
  assert.ok(existsSync(join(files.store, "ballast")), "the ballast is back");
  await checkAll(last, acknowledged);
  await last.close();
}

async function checkAll(store: Store, acknowledged: number): Promise<void> {
  for (let i = 0; i < acknowledged; i++) assert.ok(await store.get(`k${i}`), `k${i} is lost`);
}

function open(freeSpaceMinBytes: number): ReturnType<typeof openLevelStore> {
  return openLevelStore({
    dir: files.store,
    clock: systemClock,
    ballastBytes: BALLAST_BYTES,
    freeSpaceMinBytes,
  });
}

function freeBytes(): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

function fill(bytes: number): void {
  const fd = openSync(files.filler, "a");
  try {
    for (let left = bytes; left > 0; left -= MIB) writeSync(fd, Buffer.alloc(Math.min(left, MIB)));
  } catch (error) {
    assert.match(String(error), /ENOSPC/);
  } finally {
    closeSync(fd);
  }
}
