import assert from "node:assert/strict";
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SandboxRecords } from "./sandbox-records.ts";

test("a record that names another namespace is damaged, and a half-written one is removed", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-sandboxes-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const records = new SandboxRecords(dir);
  const record = { namespace: "ns-1", address: "10.64.0.2", hostInterface: "veth0", podUid: "p1" };
  await records.write(record);
  await copyFile(records.pathOf("ns-1"), records.pathOf("ns-2"));
  await copyFile(records.pathOf("ns-1"), records.pathOf("ns-3.tmp"));

  const loaded = await records.load();

  assert.deepEqual(loaded.records, [record]);
  assert.deepEqual([...loaded.damaged], [["ns-2", "it is about namespace ns-1"]]);
  assert.deepEqual((await readdir(dir)).sort(), ["ns-1", "ns-2"]);
});

test("a record with a flipped bit is damaged, and one of an earlier version gets a checksum", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-sandboxes-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const records = new SandboxRecords(dir);
  const record = { namespace: "ns-1", address: "10.64.0.2", hostInterface: "veth0", podUid: "p1" };
  await records.write(record);
  const sound = await readFile(records.pathOf("ns-1"));
  for (const [at, byte] of sound.entries()) {
    await writeFile(records.pathOf("ns-1"), Buffer.from(sound).fill(byte ^ 1, at, at + 1));
    assert.deepEqual([...(await records.load()).damaged.keys()], ["ns-1"], `flipped at ${at}`);
  }

  await writeFile(records.pathOf("ns-1"), JSON.stringify(record));
  assert.deepEqual((await records.load()).records, [record]);
  assert.deepEqual(await readFile(records.pathOf("ns-1")), sound);
});
