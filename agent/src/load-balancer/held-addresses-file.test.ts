import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HeldAddressesFile } from "./held-addresses-file.ts";

const FIRST = { ip: "192.0.2.50", interface: "eth0" };
const SECOND = { ip: "192.0.2.51", interface: "eth0" };

test("what was written down is there after opening again, and what was removed is not", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = await HeldAddressesFile.open(dir);
  await file.add([FIRST]);
  await file.add([FIRST, SECOND]);
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [FIRST, SECOND]);
  await file.remove(FIRST);
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [SECOND]);
});

test("notes a damaged file, trusts no address in it, and reads an older agent's", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "held-addresses.json");
  await (await HeldAddressesFile.open(dir)).add([FIRST]);
  const sound = await readFile(path, "utf8");
  const damaged: string[] = [];
  for (const text of ["[{", "", "{}", sound.replace("192.0.2.50", "192.0.2.10")]) {
    await writeFile(path, text);
    damaged.length = 0;
    assert.deepEqual((await HeldAddressesFile.open(dir, (it) => damaged.push(it))).held, [], text);
    assert.deepEqual(damaged, [path], text);
  }
  await writeFile(path, JSON.stringify([SECOND]));
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [SECOND]);
});
