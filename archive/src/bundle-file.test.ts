import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BundleFile } from "./bundle-file.ts";

const NOW_MS = Date.UTC(2030, 4, 7) + 123;

test("tar reads every file of a bundle, and only its owner can read it", async (t) => {
  const path = join(aDirectory(t), "b.tar.gz");
  const bundle = await BundleFile.create(path, { name: "bundle", nowMs: NOW_MS });
  const log = Buffer.from("line\n".repeat(100_000));
  await bundle.add("a.txt", Buffer.from("one"));
  await bundle.add("nodes/n-1.example/log.jsonl", log, "cut off");
  await bundle.add("nodes/n-2/agent", Buffer.alloc(0), "it is away");
  assert.equal(existsSync(path), false);
  const bytes = await bundle.finish();
  assert.equal(statSync(path).size, bytes);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const read = (name: string) => execFileSync("tar", ["-xzOf", path, `bundle/${name}`]);
  assert.equal(read("a.txt").toString(), "one");
  assert.deepEqual(read("nodes/n-1.example/log.jsonl"), log);
  assert.deepEqual(JSON.parse(read("contents.json").toString()), [
    { path: "a.txt", bytes: 3 },
    { path: "nodes/n-1.example/log.jsonl", bytes: 500_000, problem: "cut off" },
    { path: "nodes/n-2/agent", bytes: 0, problem: "it is away" },
  ]);
  assert.equal(execFileSync("tar", ["-tzf", path]).toString().split("\n").length, 4);
});

test("refuses paths that lead out of the archive", async (t) => {
  const bundle = await BundleFile.create(join(aDirectory(t), "b"), { name: "bundle", nowMs: NOW_MS });
  for (const path of ["", "/etc/x", "../x", "a/../x", "a//b", ".x", "a/.", "a\nb", "x".repeat(300)])
    await assert.rejects(bundle.add(path, Buffer.from("x")), RangeError, path);
  await bundle.discard();
});

test("discarding a bundle removes all its files, and a partial file is not replaced", async (t) => {
  const dir = aDirectory(t);
  const bundle = await BundleFile.create(join(dir, "b"), { name: "bundle", nowMs: NOW_MS });
  await bundle.add("a.txt", Buffer.from("one"));
  await assert.rejects(BundleFile.create(join(dir, "b"), { name: "bundle", nowMs: NOW_MS }), {
    code: "EEXIST",
  });
  await bundle.discard();
  assert.deepEqual(readdirSync(dir), []);
  writeFileSync(join(dir, "b.partial"), "");
  await assert.rejects(BundleFile.create(join(dir, "b"), { name: "bundle", nowMs: NOW_MS }), {
    code: "EEXIST",
  });
});

function aDirectory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
