import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { KeyedMutex } from "@forage/common/keyed-mutex";
import { ClaimStore } from "./claim-store.ts";
import { Mounts } from "./mounts.ts";
import { ChildRunner } from "./run-child.ts";

test("removes a namespace's directory with its last claim", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  for (const name of ["a", "b"]) await claims.hold("shop", name, undefined, "p", signal);
  await claims.letGo("p", signal);
  await claims.remove("shop", "a", signal);
  assert.deepEqual(await readdir(join(directory, "shop")), ["b"]);
  await claims.remove("shop", "b", signal);
  assert.deepEqual(await readdir(directory), []);
  await claims.remove("shop", "b", signal);
});

test("the next start completes a removal that a crash interrupted, with its namespace", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  await mkdir(join(directory, "shop", ".gone-a", "data"), { recursive: true });
  await mkdir(join(directory, "empty"));
  await claims.hold("kept", "a", undefined, "p", signal);
  await claims.settle(new Set(), new Map(), signal);
  assert.deepEqual(await readdir(directory), ["kept"]);
});

test("claims can be created while others of their namespace are removed", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  const comeAndGo = async (name: string) => {
    for (let round = 0; round < 15; round += 1) {
      const { path } = await claims.hold("shop", name, undefined, `p-${name}`, signal);
      assert.deepEqual(await readdir(path), []);
      await claims.letGo(`p-${name}`, signal);
      await claims.remove("shop", name, signal);
    }
  };
  await Promise.all(["a", "b", "c", "d"].map(comeAndGo));
  assert.deepEqual(await readdir(directory), []);
});

test("reports and repairs any damage of a claim's record, and keeps the data", async (t) => {
  const { claims, directory, damage, signal } = await aStore(t);
  const { path } = await claims.hold("shop", "a", 1_000_000, "p", signal);
  await writeFile(join(path, "data"), "precious");
  const record = join(directory, "shop", "a", "claim.json");
  const sound = await readFile(record);
  const damaged = [
    Buffer.alloc(0),
    sound.subarray(0, -1),
    // Every fifth byte only, because each repair syncs the disk.
    ...Array.from(sound, (byte, at) => sound.with(at, byte ^ 1)).filter((_, at) => at % 5 === 0),
  ];
  for (const [index, bytes] of [...damaged, undefined].entries()) {
    if (bytes === undefined) await rm(record);
    else await writeFile(record, bytes);
    damage.length = 0;
    await claims.settle(new Set(["p"]), new Map(), signal);
    assert.deepEqual(damage, [record], `damage ${index}`);
    assert.deepEqual((await claims.list())[0]?.users, ["p"]);
    const { capacityBytes } = await claims.hold("shop", "a", 1_000_000, "p", signal);
    assert.equal(capacityBytes, 1_000_000);
    assert.deepEqual(await readFile(record), Buffer.from(sound), `damage ${index}`);
  }
  assert.deepEqual(await readdir(path), ["data"]);
});

test("marks a claim as used again if a running container uses it, and rejects its removal", async (t) => {
  const { claims, directory, damage, signal } = await aStore(t);
  await claims.hold("shop", "a", undefined, "p", signal);
  const mark = join(directory, "shop", "a", "users", "p");
  await rm(mark);
  await claims.settle(new Set(["p"]), new Map([["shop/a", ["p"]]]), signal);
  assert.deepEqual(damage, [mark]);
  await assert.rejects(claims.remove("shop", "a", signal), { code: "IN_USE" });
});

test("reads an older agent's record, and rejects a record of an unknown format", async (t) => {
  const { claims, directory, damage, signal } = await aStore(t);
  const { path } = await claims.hold("shop", "a", undefined, "p", signal);
  await writeFile(join(path, "data"), "precious");
  const record = join(directory, "shop", "a", "claim.json");
  await writeFile(record, '{"format":1,"capacityBytes":5}');
  assert.equal((await claims.hold("shop", "a", 7, "p", signal)).capacityBytes, 5);
  assert.deepEqual(damage, []);
  await writeFile(record, '{"format":2,"size":7}');
  await assert.rejects(claims.hold("shop", "a", 1_000_000, "p", signal), { code: "DAMAGED" });
  await rm(join(directory, "shop", "a", "claim.json"));
  await mkdir(join(directory, "shop", "a", "claim.json"));
  await assert.rejects(claims.hold("shop", "a", undefined, "p", signal), { code: "DAMAGED" });
  assert.deepEqual(await readdir(path), ["data"]);
});

async function aStore(t: TestContext) {
  const damage: string[] = [];
  const directory = await mkdtemp(join(tmpdir(), "forage-claims-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const children = new ChildRunner();
  const claims = new ClaimStore({
    ...{ directory, children, mounts: new Mounts(children), mutex: new KeyedMutex() },
    imagesWork: async () => false,
    warn: () => undefined,
    noteDamage: (path) => damage.push(path),
  });
  return { claims, directory, damage, signal: t.signal };
}
