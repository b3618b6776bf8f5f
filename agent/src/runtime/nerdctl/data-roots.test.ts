import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { DataRoots, isBusy, readId } from "./data-roots.ts";

const ID = "ab".repeat(32);
const OTHER = "cd".repeat(32);

function given(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-homes-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return {
    dir,
    dataRoots: new DataRoots({
      dataRoots: join(dir, "containers"),
      commonRoot: join(dir, "common"),
      volumes: join(dir, "volumes"),
      address: "/run/containerd/containerd.sock",
    }),
  };
}

async function aHome(dataRoots: DataRoots, name: string, id?: string) {
  const home = await dataRoots.claim(name);
  assert.ok(home);
  if (id !== undefined) writeFileSync(home.idFile, id);
  return home;
}

const NONE: ReadonlySet<string> = new Set();

test("a name can be claimed once, and its directory is private", async (t) => {
  const { dataRoots } = given(t);
  const home = await aHome(dataRoots, "a");
  assert.equal(statSync(home.dir).mode & 0o777, 0o700);
  assert.equal(await dataRoots.claim("a"), undefined);
  await dataRoots.release(home);
  assert.ok(await dataRoots.claim("a"));
});

test("the id is available once nerdctl has written all of it", async (t) => {
  const { dataRoots } = given(t);
  const home = await aHome(dataRoots, "a");
  assert.equal(await readId(home), undefined);
  writeFileSync(home.idFile, ID.slice(0, 10));
  assert.equal(await readId(home), undefined);
  writeFileSync(home.idFile, ID);
  assert.equal(await readId(home), ID);
});

test("releasing ids removes their data roots and the directories that nerdctl created elsewhere", async (t) => {
  const { dir, dataRoots } = given(t);
  const [gone, kept] = [await aHome(dataRoots, "a", ID), await aHome(dataRoots, "b", OTHER)];
  const shadow = (id: string) => join(dir, "common", "0123", "containers", "ns", id);
  for (const id of [ID, OTHER]) mkdirSync(shadow(id), { recursive: true });
  await dataRoots.releaseIds(new Set([ID]));
  assert.deepEqual(
    [gone.dir, kept.dir, shadow(ID), shadow(OTHER)].map((it) => existsSync(it)),
    [false, true, false, true],
  );
});

test("the sweep removes old data roots that have no container", async (t) => {
  const { dataRoots } = given(t);
  const [alive, dead, young] = [
    await aHome(dataRoots, "alive", ID),
    await aHome(dataRoots, "dead", OTHER),
    await aHome(dataRoots, "young"),
  ];
  for (const { dir } of [alive, dead]) utimesSync(dir, 1, 1);
  await dataRoots.sweep(new Set([ID]), Date.now() - 60_000, NONE);
  assert.deepEqual(
    [alive, dead, young].map((it) => existsSync(it.dir)),
    [true, false, true],
  );
});

test("the sweep keeps data roots in use, whatever their age by the clock", async (t) => {
  const { dataRoots } = given(t);
  const ours = await aHome(dataRoots, "ours");
  const others = await aHome(dataRoots, "others");
  const child = spawn("/bin/sh", ["-c", "read x", `--cidfile=${others.idFile}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  await new Promise((resolve) => child.once("spawn", resolve));
  const afterJumpMs = Date.now() + 3_600_000;

  await dataRoots.sweep(new Set(), afterJumpMs, new Set(["ours"]));

  assert.deepEqual(
    [ours, others].map(({ dir }) => existsSync(dir)),
    [true, true],
  );
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  await dataRoots.sweep(new Set(), afterJumpMs, NONE);
  assert.deepEqual(
    [ours, others].map(({ dir }) => existsSync(dir)),
    [false, false],
  );
});

test("removes the data of image volumes with the container, also when a reboot has removed its data root", async (t) => {
  const { dir, dataRoots } = given(t);
  const volumesOf = (name: string) => join(dir, "volumes", name);
  const home = await aHome(dataRoots, "a");
  writeFileSync(join(volumesOf("a"), "data"), "x");
  await dataRoots.release(home);
  assert.equal(existsSync(volumesOf("a")), false);

  await aHome(dataRoots, "lives");
  for (const name of ["old", "young"]) mkdirSync(volumesOf(name));
  for (const name of ["old", "lives"]) utimesSync(volumesOf(name), 1, 1);
  await dataRoots.sweep(new Set(), Date.now() - 60_000, NONE);
  assert.deepEqual(["old", "young", "lives"].map(volumesOf).map(existsSync), [false, true, true]);
});

test("a data root is busy while a process has its id file as an argument", async (t) => {
  const { dataRoots } = given(t);
  const home = await aHome(dataRoots, "a");
  assert.equal(await isBusy(home), false);
  const child = spawn("/bin/sh", ["-c", "read x", `--cidfile=${home.idFile}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  await new Promise((resolve) => child.once("spawn", resolve));
  assert.equal(await isBusy(home), true);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  assert.equal(await isBusy(home), false);
});
