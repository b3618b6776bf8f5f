import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SpaceGuard } from "./space-guard.ts";

const MIB = 1024 * 1024;

test("reports low space below the watermark, and until a quarter more is free", async (t) => {
  const disk = { freeBytes: 100 * MIB };
  const guard = makeGuard(t, disk);
  const lowAt = async (freeBytes: number): Promise<boolean> => {
    disk.freeBytes = freeBytes;
    await guard.check();
    return guard.low;
  };
  assert.equal(await lowAt(100 * MIB), false);
  assert.equal(await lowAt(41 * MIB), false);
  assert.equal(await lowAt(39 * MIB), true);
  assert.match(guard.message, /only 39 MiB are free .* needs 40/);
  assert.equal(await lowAt(45 * MIB), true);
  assert.equal(await lowAt(51 * MIB), false);
});

test("checks the free space after each written MiB, not after each write", async (t) => {
  const disk = { freeBytes: 100 * MIB };
  const guard = makeGuard(t, disk);
  await guard.check();
  disk.freeBytes = 0;
  await guard.wrote(MIB - 1);
  assert.equal(guard.low, false);
  await guard.wrote(1);
  assert.equal(guard.low, true);
});

test("keeps ballast while there is space, and removes it when an opening needs the space", async (t) => {
  const disk = { freeBytes: 100 * MIB };
  const guard = makeGuard(t, disk);
  await guard.makeRoom();
  await guard.loadBallast();
  assert.equal(statSync(guard.ballastFile).size, 2 * MIB);
  assert.equal(statSync(guard.ballastFile).blocks * 512, 2 * MIB);
  disk.freeBytes = 10 * MIB;
  await guard.makeRoom();
  assert.ok(!existsSync(guard.ballastFile));
  await guard.loadBallast();
  assert.ok(!existsSync(guard.ballastFile));
});

test("keeps the last state when the free space can't be read", async (t) => {
  const guard = makeGuard(t, undefined);
  await guard.check();
  assert.equal(guard.low, false);
});

function makeGuard(
  t: { after(fn: () => void): void },
  disk: { readonly freeBytes: number } | undefined,
): SpaceGuard & { ballastFile: string } {
  const dir = mkdtempSync(join(tmpdir(), "forage-space-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const ballastFile = join(dir, "ballast");
  const freeBytes = async (): Promise<number> => {
    if (disk === undefined) throw new Error("no such disk");
    return disk.freeBytes;
  };
  const guard = new SpaceGuard({ ballastFile, ballastBytes: 2 * MIB, minBytes: 40 * MIB, freeBytes });
  return Object.assign(guard, { ballastFile });
}
