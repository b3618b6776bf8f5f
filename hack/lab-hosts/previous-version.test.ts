import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../lib/run.ts";
import { choosePrevious, findPreviousVersion } from "./previous-version.ts";

test("the previous version is the newest tag that is not of this commit, or else the named commit", () => {
  const all = ["v0.3.0", "v0.2.0", "v0.1.0"];
  assert.equal(choosePrevious({ all, own: [] }, "abc\n"), "v0.3.0");
  assert.equal(choosePrevious({ all, own: ["v0.3.0"] }, "abc\n"), "v0.2.0");
  assert.equal(choosePrevious({ all: ["v0.1.0"], own: ["v0.1.0"] }, "abc\n"), "abc");
});

test("a checkout without that history returns the reason", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-history-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  await run("git", ["init", "--quiet", dir]);
  assert.match(String(await findPreviousVersion(dir)), /does not have the previous version.*--unshallow/);
});
