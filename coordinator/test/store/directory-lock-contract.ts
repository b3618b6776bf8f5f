import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { DirectoryLock } from "@forage/identity/directory-lock";

type LockDirectory = (dir: string) => Promise<DirectoryLock | undefined>;

/** The contract of locks on directories. `open` is called for each test. */
export function testDirectoryLock(name: string, open: () => LockDirectory): void {
  test(`${name}: a directory has one lock at a time, also within a process`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    const first = await lock(dir);
    assert.ok(first);
    assert.equal(await lock(dir), undefined);
    // An attempt in vain takes nothing from the holder.
    assert.equal(await lock(dir), undefined);

    first.release();
    const second = await lock(dir);
    assert.ok(second);
    second.release();
  });

  test(`${name}: each directory has a lock of its own`, async (t) => {
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

  test(`${name}: a directory has the same lock by each of its paths`, async (t) => {
    const lock = open();
    const dir = aDirectory(t);
    const other = join(aDirectory(t), "link");
    symlinkSync(dir, other);
    const taken = await lock(dir);
    assert.ok(taken);
    t.after(() => taken.release());
    assert.equal(await lock(other), undefined);
  });

  test(`${name}: a directory that is missing can't be locked`, async (t) => {
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
