import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { KeyedMutex } from "@forage/common/keyed-mutex";
import { ClaimStore } from "./claim-store.ts";
import { Mounts } from "./mounts.ts";
import { ChildRunner } from "./run-child.ts";

test("nothing is left of a namespace once its last claim is removed", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  for (const name of ["a", "b"]) await claims.hold("shop", name, undefined, "p", signal);
  await claims.letGo("p", signal);
  await claims.remove("shop", "a", signal);
  assert.deepEqual(await readdir(join(directory, "shop")), ["b"]);
  await claims.remove("shop", "b", signal);
  assert.deepEqual(await readdir(directory), []);
  await claims.remove("shop", "b", signal);
});

test("what a crash left of a removal goes with the next start, and its namespace", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  await mkdir(join(directory, "shop", ".gone-a", "data"), { recursive: true });
  await mkdir(join(directory, "empty"));
  await claims.hold("kept", "a", undefined, "p", signal);
  await claims.settle(new Set(), signal);
  assert.deepEqual(await readdir(directory), ["kept"]);
});

test("claims can be made while others of their namespace are removed", async (t) => {
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

test("a claim whose record can't be read is neither new nor without a limit", async (t) => {
  const { claims, directory, signal } = await aStore(t);
  const { path } = await claims.hold("shop", "a", undefined, "p", signal);
  await writeFile(join(path, "data"), "precious");
  for (const text of ["", "{", '{"format":2}']) {
    await writeFile(join(directory, "shop", "a", "claim.json"), text);
    await assert.rejects(claims.hold("shop", "a", 1_000_000, "p", signal), { code: "DAMAGED" });
  }
  await rm(join(directory, "shop", "a", "claim.json"));
  await mkdir(join(directory, "shop", "a", "claim.json"));
  await assert.rejects(claims.hold("shop", "a", undefined, "p", signal), { code: "DAMAGED" });
  assert.deepEqual(await readdir(path), ["data"]);
});

async function aStore(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), "forage-claims-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const children = new ChildRunner();
  const claims = new ClaimStore({
    ...{ directory, children, mounts: new Mounts(children), mutex: new KeyedMutex() },
    imagesWork: async () => false,
    warn: () => undefined,
  });
  return { claims, directory, signal: t.signal };
}
