import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { lockDirectory } from "./directory-lock.ts";

test("a directory has at most one lock at a time, also within a process", async (t) => {
  const dir = aDirectory(t);
  const lock = await lockDirectory(dir);
  assert.ok(lock);

  assert.equal(await lockDirectory(dir), undefined);

  lock.release();
  const again = await lockDirectory(dir);
  assert.ok(again);
  again.release();
});

test("the kernel releases the lock of a process that was killed", async (t) => {
  const dir = aDirectory(t);
  const script = `import { lockDirectory } from ${JSON.stringify(join(import.meta.dirname, "directory-lock.ts"))};
    await lockDirectory(${JSON.stringify(dir)});
    console.log("locked");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  assert.equal(await lockDirectory(dir), undefined);

  child.kill("SIGKILL");
  await once(child, "exit");

  const lock = await lockDirectory(dir);
  assert.ok(lock);
  lock.release();
});

function aDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-lock-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
