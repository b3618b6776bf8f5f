import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadHostKey } from "./host-key.ts";

test("generates another key when one can't be parsed, and stores it", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "forage-host-key-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "key");
  const made = ["broken", "also broken", "good", "never made"];
  const maker = { generate: () => made.shift() ?? "", isReadable: (key: string) => key === "good" };
  assert.equal(await loadHostKey(path, maker), "good");
  assert.equal(await loadHostKey(path, maker), "good");
  assert.equal(await readFile(path, "utf8"), "good");
  assert.deepEqual(made, ["never made"]);
});

test("fails without writing a file when no key can be parsed", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "forage-host-key-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "key");
  const maker = { generate: () => "broken", isReadable: () => false };
  await assert.rejects(loadHostKey(path, maker), /hostKeyFile: .*no readable key could be made/);
  await assert.rejects(readFile(path), { code: "ENOENT" });
});
