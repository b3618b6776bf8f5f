import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { testHeldRecords } from "../../test/held-records-contract.ts";
import { HeldAddressesFile } from "./held-addresses-file.ts";

const FIRST = { ip: "192.0.2.50", interface: "eth0" };
const SECOND = { ip: "192.0.2.51", interface: "eth0" };

testHeldRecords("in files", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return HeldAddressesFile.open(dir);
});

test("reopening returns addresses that were added, without removed ones", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = await HeldAddressesFile.open(dir);
  await file.add([FIRST]);
  await file.add([FIRST, SECOND]);
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [FIRST, SECOND]);
  await file.remove(FIRST);
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [SECOND]);
});

test("reports a damaged file, ignores its addresses, and reads an older agent's file", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "held-addresses.json");
  await (await HeldAddressesFile.open(dir)).add([FIRST]);
  const sound = await readFile(path, "utf8");
  const damaged: string[] = [];
  for (const text of ["[{", "", "{}", sound.replace("192.0.2.50", "192.0.2.10")]) {
    await writeFile(path, text);
    damaged.length = 0;
    await rm(join(dir, "held-addresses.copy.json"), { force: true });
    assert.deepEqual((await HeldAddressesFile.open(dir, (it) => damaged.push(it))).held, [], text);
    assert.deepEqual(damaged, [path], text);
  }
  await writeFile(path, JSON.stringify([SECOND]));
  assert.deepEqual((await HeldAddressesFile.open(dir)).held, [SECOND]);
});

for (const name of ["held-addresses.json", "held-addresses.copy.json"])
  for (const content of [undefined, "[{"]) {
    const how = content === undefined ? "removed" : "damaged";

    test(`restores ${name} after it was ${how}, at the next start`, async (t) => {
      const { dir, file, notes, note } = await held(t);
      await file.add([FIRST, SECOND]);
      await spoil(join(dir, name), content);

      assert.deepEqual((await HeldAddressesFile.open(dir, note)).held, [FIRST, SECOND]);

      const isQuiet = name.includes("copy") && content === undefined;
      assert.deepEqual(notes, isQuiet ? [] : [name]);
      await assertWhole(dir);
    });

    test(`restores ${name} after it was ${how}, at the next check`, async (t) => {
      const { dir, file, notes } = await held(t);
      await file.add([FIRST]);
      await spoil(join(dir, name), content);

      await file.check();

      assert.deepEqual(notes, [name]);
      await assertWhole(dir);
      await file.check();
      assert.deepEqual(notes, [name]);
    });
  }

test("no single flipped bit or emptied file loses or adds an address", async (t) => {
  const { dir, file, note } = await held(t);
  await file.add([FIRST, SECOND]);
  for (const name of ["held-addresses.json", "held-addresses.copy.json"]) {
    const path = join(dir, name);
    const sound = await readFile(path);
    const flips = [...sound].map((byte, at) => Buffer.from(sound).fill(byte ^ 1, at, at + 1));
    for (const bytes of [Buffer.alloc(0), ...flips]) {
      await writeFile(path, bytes);
      assert.deepEqual((await HeldAddressesFile.open(dir, note)).held, [FIRST, SECOND], `${name}: ${bytes}`);
      assert.deepEqual(await readFile(path), sound);
    }
  }
});

test("leaves the directory empty if the host holds no address", async (t) => {
  const { dir, file, notes } = await held(t);
  await file.check();
  assert.deepEqual(await readdir(dir), []);
  assert.deepEqual(notes, []);
});

async function held(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-held-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const notes: string[] = [];
  const note = (path: string) => notes.push(basename(path));
  return { dir, notes, note, file: await HeldAddressesFile.open(dir, note) };
}

function spoil(path: string, content: string | undefined): Promise<void> {
  return content === undefined ? rm(path) : writeFile(path, content);
}

async function assertWhole(dir: string): Promise<void> {
  const [one, other] = (await readdir(dir)).sort();
  assert.deepEqual([one, other], ["held-addresses.copy.json", "held-addresses.json"]);
  const texts = await Promise.all([one, other].map((name = "") => readFile(join(dir, name), "utf8")));
  assert.equal(texts[0], texts[1]);
  assert.match(texts[0] ?? "", /192\.0\.2\.50/);
}
