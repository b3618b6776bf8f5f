import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { writeFilesVolume } from "./files-volume.ts";
import type { PlannedFile } from "./plan-files.ts";

function files(contents: Readonly<Record<string, string>>, mode = 0o644): PlannedFile[] {
  return Object.entries(contents).map(([path, text]) => ({ path, content: Buffer.from(text), mode }));
}

async function aDirectory(t: TestContext): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), "forage-files-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  return join(parent, "volume");
}

/** Returns the files as users read them, with links followed. */
async function contentsOf(directory: string): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  const visit = async (path: string) => {
    for (const name of await readdir(join(directory, path))) {
      if (path === "" && name.startsWith("..")) continue;
      const relative = join(path, name);
      const text = await readFile(join(directory, relative), "utf8").catch(() => undefined);
      if (text === undefined) await visit(relative);
      else seen[relative] = text;
    }
  };
  await visit("");
  return seen;
}

test("writes files with their modes, whatever the umask", async (t) => {
  const directory = await aDirectory(t);
  const umask = process.umask(0o077);
  t.after(() => process.umask(umask));
  const desired = { a: "1", "deep/er/b": "2" };
  assert.equal(await writeFilesVolume(directory, files(desired, 0o640), undefined), true);
  assert.deepEqual(await contentsOf(directory), desired);
  const modeOf = async (path: string) => ((await stat(join(directory, path))).mode & 0o7777).toString(8);
  assert.deepEqual(
    await Promise.all([".", "..data", "..data/deep", "..data/a", "..data/deep/er/b"].map(modeOf)),
    ["755", "755", "755", "640", "640"],
  );
  assert.equal(await readlink(join(directory, "deep")), "..data/deep");
});

test("leaves existing files as they are", async (t) => {
  const directory = await aDirectory(t);
  const desired = files({ a: "1", "b/c": "2" });
  await writeFilesVolume(directory, desired, undefined);
  const before = await readlink(join(directory, "..data"));
  assert.equal(await writeFilesVolume(directory, desired, undefined), false);
  assert.equal(await readlink(join(directory, "..data")), before);
  for (const changed of [files({ a: "2", "b/c": "2" }), files({ a: "2" }), files({ a: "2" }, 0o600), []]) {
    assert.equal(await writeFilesVolume(directory, changed, undefined), true);
    assert.equal(await writeFilesVolume(directory, changed, undefined), false);
  }
  assert.deepEqual(await contentsOf(directory), {});
});

test("replaces a file by a directory and back", async (t) => {
  const directory = await aDirectory(t);
  for (const desired of [{ a: "1" }, { "a/b": "2" }, { "a/b/c": "3" }, { a: "4" }]) {
    await writeFilesVolume(directory, files(desired), undefined);
    assert.deepEqual(await contentsOf(directory), desired);
  }
  const hidden = (await readdir(directory)).filter((name) => name.startsWith(".."));
  assert.equal(hidden.length, 2, "old ones are cleared away");
});

test("a concurrent reader gets either the old or the new files as a whole", async (t) => {
  const directory = await aDirectory(t);
  const version = (n: number) => files({ a: `${n}`, "b/c": `${n}` });
  await writeFilesVolume(directory, version(0), undefined);
  let writing = true;
  const torn: string[] = [];
  const reader = (async () => {
    while (writing) {
      // A program that needs two files of one version resolves the link once.
      const generation = join(directory, await readlink(join(directory, "..data")));
      const [a, b] = await Promise.all(
        ["a", "b/c"].map((path) => readFile(join(generation, path), "utf8").catch(() => "gone")),
      );
      if (a !== "gone" && b !== "gone" && a !== b) torn.push(`${a} ${b}`);
      const direct = await readFile(join(directory, "a"), "utf8").catch((error) => `${error}`);
      if (!/^\d+$/.test(direct)) torn.push(direct);
    }
  })();
  for (let n = 1; n <= 100; n += 1) await writeFilesVolume(directory, version(n), undefined);
  writing = false;
  await reader;
  assert.deepEqual(
    torn.filter((it) => !it.includes("ENOENT")),
    [],
  );
});

test("a write repairs the result of an interrupted one", async (t) => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const directory = await aDirectory(t);
    const random = randomOf(seed).next;
    await writeFilesVolume(directory, files({ a: "old", b: "old" }), undefined);
    const litter: (() => Promise<unknown>)[] = [
      () => mkdir(join(directory, "..gen-2")),
      () => writeFile(join(directory, "..gen-2", "a"), "half"),
      () => symlink("..gen-2", join(directory, "..data_next")),
      () => rm(join(directory, "a")),
      () => symlink("..data/c", join(directory, "c")),
      () => rm(join(directory, "..data")),
      () => writeFile(join(directory, "..gen-1", "a"), "torn"),
    ];
    for (const act of litter) if (random() < 0.5) await act().catch(() => undefined);
    const desired = random() < 0.5 ? { a: "old", b: "old" } : { a: "new", "c/d": "new" };
    await writeFilesVolume(directory, files(desired), undefined);
    assert.deepEqual(await contentsOf(directory), desired, `seed ${seed}`);
    assert.equal(await writeFilesVolume(directory, files(desired), undefined), false, `seed ${seed}`);
  }
});
