import assert from "node:assert/strict";
import { mkdtemp, open, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { writeFilesDurably } from "./durable-files.ts";
import { hostFiles } from "./journal-files.ts";
import { StateFiles } from "./state-files.ts";

test("syncs files before renaming them, and the directory afterwards", async (t) => {
  const dir = await aDirectory(t);
  const synced = await recordSyncs(t, async (path) =>
    path === dir
      ? { names: (await readdir(dir)).sort() }
      : { file: basename(path), text: await textOf(path) },
  );

  await writeFilesDurably(dir, [
    { name: "a", bytes: Buffer.from("one") },
    { name: "b", bytes: Buffer.from("two") },
  ]);

  assert.deepEqual(
    synced.slice(0, 2).sort((x, y) => JSON.stringify(x).localeCompare(JSON.stringify(y))),
    [
      { file: "a.tmp", text: "one" },
      { file: "b.tmp", text: "two" },
    ],
  );
  assert.deepEqual(synced.slice(2), [{ names: ["a", "b"] }]);
});

test("a removed state is deleted from the disk once its removal is confirmed", async (t) => {
  const dir = await aDirectory(t);
  const states = new StateFiles(dir, hostFiles);
  await states.write("p", { hostPorts: [], containers: {} });
  const synced = await recordSyncs(t, async (path) => ({ path, names: await readdir(dir) }));

  await states.write("p", undefined);

  assert.deepEqual(synced, [{ path: dir, names: [] }]);
});

async function aDirectory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "forage-durable-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Records the result of `seen` at each sync. `seen` gets the path of the synced file or directory. */
async function recordSyncs<Seen>(t: TestContext, seen: (path: string) => Promise<Seen>): Promise<Seen[]> {
  const handle = await open(tmpdir());
  const prototype = Object.getPrototypeOf(handle) as {
    sync: (this: { readonly fd: number }) => Promise<void>;
  };
  await handle.close();
  const found: Seen[] = [];
  t.mock.method(prototype, "sync", async function (this: { readonly fd: number }) {
    found.push(await seen(await readlink(`/proc/self/fd/${this.fd}`)));
  });
  return found;
}

function textOf(path: string): Promise<string> {
  return readFile(path, "utf8");
}
