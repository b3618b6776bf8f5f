import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ContainerHomes, isBusy, readId } from "./container-homes.ts";

const ID = "ab".repeat(32);
const OTHER = "cd".repeat(32);

function given(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-homes-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return {
    dir,
    homes: new ContainerHomes({
      homes: join(dir, "containers"),
      commonRoot: join(dir, "common"),
      volumes: join(dir, "volumes"),
      address: "/run/containerd/containerd.sock",
    }),
  };
}

async function aHome(homes: ContainerHomes, name: string, id?: string) {
  const home = await homes.claim(name);
  assert.ok(home);
  if (id !== undefined) writeFileSync(home.idFile, id);
  return home;
}

test("a name is had once, and no one else may look in", async (t) => {
  const { homes } = given(t);
  const home = await aHome(homes, "a");
  assert.equal(statSync(home.dir).mode & 0o777, 0o700);
  assert.equal(await homes.claim("a"), undefined);
  await homes.release(home);
  assert.ok(await homes.claim("a"));
});

test("the id is known once nerdctl has written all of it", async (t) => {
  const { homes } = given(t);
  const home = await aHome(homes, "a");
  assert.equal(await readId(home), undefined);
  writeFileSync(home.idFile, ID.slice(0, 10));
  assert.equal(await readId(home), undefined);
  writeFileSync(home.idFile, ID);
  assert.equal(await readId(home), ID);
});

test("removal takes the homes of these ids and what nerdctl made elsewhere", async (t) => {
  const { dir, homes } = given(t);
  const [gone, kept] = [await aHome(homes, "a", ID), await aHome(homes, "b", OTHER)];
  const shadow = (id: string) => join(dir, "common", "0123", "containers", "ns", id);
  for (const id of [ID, OTHER]) mkdirSync(shadow(id), { recursive: true });
  await homes.releaseIds(new Set([ID]));
  assert.deepEqual(
    [gone.dir, kept.dir, shadow(ID), shadow(OTHER)].map((it) => existsSync(it)),
    [false, true, false, true],
  );
});

test("the sweep takes what is old and has no container", async (t) => {
  const { homes } = given(t);
  const [alive, dead, young] = [
    await aHome(homes, "alive", ID),
    await aHome(homes, "dead", OTHER),
    await aHome(homes, "young"),
  ];
  for (const { dir } of [alive, dead]) utimesSync(dir, 1, 1);
  await homes.sweep(new Set([ID]), Date.now() - 60_000);
  assert.deepEqual(
    [alive, dead, young].map((it) => existsSync(it.dir)),
    [true, false, true],
  );
});

test("what its image's volumes hold goes with a container, also when a reboot took its home", async (t) => {
  const { dir, homes } = given(t);
  const volumesOf = (name: string) => join(dir, "volumes", name);
  const home = await aHome(homes, "a");
  writeFileSync(join(volumesOf("a"), "data"), "x");
  await homes.release(home);
  assert.equal(existsSync(volumesOf("a")), false);

  await aHome(homes, "lives");
  for (const name of ["old", "young"]) mkdirSync(volumesOf(name));
  for (const name of ["old", "lives"]) utimesSync(volumesOf(name), 1, 1);
  await homes.sweep(new Set(), Date.now() - 60_000);
  assert.deepEqual(["old", "young", "lives"].map(volumesOf).map(existsSync), [false, true, true]);
});

test("a home is busy while a process has its id file for an argument", async (t) => {
  const { homes } = given(t);
  const home = await aHome(homes, "a");
  assert.equal(await isBusy(home), false);
  const { spawn } = await import("node:child_process");
  const child = spawn("/bin/sh", ["-c", "read x", `--cidfile=${home.idFile}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  await new Promise((resolve) => child.once("spawn", resolve));
  assert.equal(await isBusy(home), true);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  assert.equal(await isBusy(home), false);
});
