import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { TokenFiles } from "./token-files.ts";

const token = (text: string) => ({ token: text, expiresAt: { seconds: 1_000n, nanos: 0 } });

test("the newest tokens survive the agent and are readable by root only", async (t) => {
  const directory = await aDirectory(t);
  const files = await open(directory);
  for (const [uid, text] of [
    ["a", "first"],
    ["b", "other"],
    ["a", "second"],
  ] as const) {
    files.set(uid, token(text));
  }
  files.delete("b");
  files.delete("unknown");
  assert.deepEqual(files.get("a"), token("second"));
  await files.close();
  assert.deepEqual(await readdir(directory), ["a"]);
  assert.equal((await stat(join(directory, "a"))).mode & 0o777, 0o600);
  const next = await open(directory);
  assert.deepEqual([...next.keys()], ["a"]);
  assert.deepEqual(next.get("a"), token("second"));
});

test("an unreadable file counts as no token", async (t) => {
  const directory = await aDirectory(t);
  const files = await open(directory);
  files.set("../x", token("escaped"));
  files.set("good", token("yes"));
  await files.close();
  await writeFile(join(directory, "torn"), Uint8Array.of(0x0a, 0x7f, 1));
  await writeFile(join(directory, "empty"), "");
  await writeFile(join(directory, "good.tmp"), "");
  const next = await open(directory);
  assert.deepEqual([...next.keys()], ["good"]);
  assert.deepEqual(await readdir(directory), ["good"]);
});

test("a directory that can't be created is reported, and tokens stay in memory", async () => {
  const errors: unknown[] = [];
  const files = await TokenFiles.open({ directory: "/dev/null/x", onError: (error) => errors.push(error) });
  files.set("a", token("first"));
  await files.close();
  assert.deepEqual(files.get("a"), token("first"));
  assert.equal(errors.length, 2);
});

function open(directory: string): Promise<TokenFiles> {
  return TokenFiles.open({ directory, onError: assert.ifError });
}

async function aDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "forage-tokens-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
