import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readKeyFiles, writeKeyFiles } from "./key-files.ts";

test("reads and writes the files of both directories, readable by their owner only", async (t) => {
  const [from, to] = [scratch(t), scratch(t)];
  put(from, "authority/ca.pem", "ca");
  put(from, "authority/ca.pem.new", "half of it");
  put(from, "keys/secrets.keys", "secrets");
  put(from, "keys/old/identity.pem", "old");
  put(from, "store/db", "data");
  const files = await readKeyFiles(from);
  const paths = ["authority/ca.pem", "keys/old/identity.pem", "keys/secrets.keys"];
  assert.deepEqual(
    files.map(({ path, content }) => [path, String(content)]),
    [
      ["authority/ca.pem", "ca"],
      ["keys/old/identity.pem", "old"],
      ["keys/secrets.keys", "secrets"],
    ],
  );
  assert.deepEqual(await writeKeyFiles(to, files), paths);
  assert.deepEqual(await readKeyFiles(to), files);
  for (const path of paths) assert.equal(statSync(join(to, path)).mode & 0o777, 0o600);
  for (const path of ["authority", "keys"]) assert.equal(statSync(join(to, path)).mode & 0o777, 0o700);
  assert.equal(existsSync(join(to, "joining")), false);
});

test("does not pass on a file that other users can read", async (t) => {
  const dir = scratch(t);
  put(dir, "authority/ca.pem", "ca");
  put(dir, "keys/secrets.keys", "secrets");
  chmodSync(join(dir, "keys/secrets.keys"), 0o640);
  await assert.rejects(readKeyFiles(dir), { code: "FILE_UNSAFE" });
});

test("refuses too many files", async (t) => {
  const dir = scratch(t);
  put(dir, "authority/ca.pem", "ca");
  for (let at = 0; at < 64; at++) put(dir, `keys/${at}`, "x");
  await assert.rejects(readKeyFiles(dir), /have 65 files with 66 bytes; at most 64/);
});

test("writes no file outside of the two directories", async (t) => {
  const dir = scratch(t);
  for (const path of [
    "../authority/ca.pem",
    "authority/../../x",
    "/etc/passwd",
    "store/db",
    "authority",
    "keys/.x",
    "keys//x",
    "keys/x/",
    "",
  ])
    await assert.rejects(
      writeKeyFiles(dir, [{ path, content: Buffer.from("x") }]),
      { message: /which is none of its keys/ },
      path,
    );
  assert.equal(existsSync(join(dir, "keys")), false);
});

test("keeps existing keys, and replaces leftovers of an interrupted join", async (t) => {
  const dir = scratch(t);
  const files = [{ path: "authority/ca.pem", content: Buffer.from("new") }];
  put(dir, "joining/authority/other.pem", "left over");
  await writeKeyFiles(dir, files);
  assert.deepEqual(
    (await readKeyFiles(dir)).map(({ path }) => path),
    ["authority/ca.pem"],
  );
  await assert.rejects(writeKeyFiles(dir, files), /keys is there, so this host has keys of a cluster/);
});

function scratch(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-keys-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function put(dir: string, path: string, text: string): void {
  mkdirSync(join(dir, path, ".."), { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, path), text, { mode: 0o600 });
}
