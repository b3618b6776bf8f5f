import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { DirectoryLock } from "@forage/identity/directory-lock";

type LockDirectory = (dir: string) => Promise<DirectoryLock | undefined>;

/** The contract of locks on directories. `open` is called for each test. */
export function testDirectoryLock(name: string, open: () => LockDirectory): void {
  test(`${name}: grants one lock of a directory at a time, even within a process`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    const first = await lock(dir);
    assert.ok(first);
    assert.equal(await lock(dir), undefined);
    // A failed attempt does not affect the holder.
    assert.equal(await lock(dir), undefined);

    first.release();
    const second = await lock(dir);
    assert.ok(second);
    second.release();
  });

  test(`${name}: grants separate locks of different directories`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    const inner = join(dir, "inner");
    mkdirSync(inner);
    const locks = [await lock(dir), await lock(inner)];
    for (const taken of locks) {
      assert.ok(taken);
      t.after(() => taken.release());
    }
  });

  test(`${name}: grants one lock for all paths of a directory`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    const other = join(aDirectory(t), "link");
    symlinkSync(dir, other);
    const taken = await lock(dir);
    assert.ok(taken);
    t.after(() => taken.release());
    assert.equal(await lock(other), undefined);
  });

  test(`${name}: refuses to lock a missing directory`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    await assert.rejects(async () => lock(join(dir, "missing")), { code: "ENOENT" });
  });
}

function aDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-lock-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
