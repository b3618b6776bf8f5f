import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { openPrivateFile } from "./private-file.ts";

test("a child can read the file, which has no directory entry and is unreadable for other users", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-private-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = await openPrivateFile(dir, "secret\n");
  assert.deepEqual(readdirSync(dir), []);
  assert.equal(statSync(file.path).mode & 0o777, 0o600);
  for (const _ of [1, 2]) {
    const { stdout } = await promisify(execFile)("cat", [file.path]);
    assert.equal(stdout, "secret\n");
  }
  await promisify(execFile)("/bin/sh", ["-c", 'echo answer >"$0"', file.path]);
  assert.equal(await file.read(), "answer\n");
  await file.close();
  assert.throws(() => statSync(file.path));
});
