import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { contentStoreConformance } from "./conformance.ts";
import { DirectoryContentStore, type DirectoryContentStoreOptions } from "./directory-content-store.ts";

const never = new AbortController().signal;
const put = { maxBytes: 1024 ** 3, verify: () => {}, signal: never };

contentStoreConformance("directory", async () => {
  const dir = await mkdtemp(join(tmpdir(), "forage-content-"));
  return { store: await open(dir), dispose: () => rm(dir, { recursive: true, force: true }) };
});

test("refuses an archive that would use the reserved space, and keeps no part of the archive", async (t) => {
  const dir = await directory(t);
  let freeBytes = 100 * 1024 * 1024;
  const store = await open(dir, { freeBytes: async () => freeBytes, reserveBytes: 50 * 1024 * 1024 });
  const growing = async function* () {
    for (let index = 0; index < 60; index++) {
      freeBytes -= 1024 * 1024;
      yield Buffer.alloc(1024 * 1024);
    }
  };
  await assert.rejects(store.put("o/w/a", growing(), put), {
    code: "RESOURCE_EXHAUSTED",
    message: /stay in reserve/,
  });
  assert.equal(await store.stat("o/w/a"), undefined);
  assert.deepEqual(await readdir(join(dir, ".uploads")), []);
});

test("removes unfinished uploads of an earlier process", async (t) => {
  const dir = await directory(t);
  await (await open(dir)).close();
  await writeFile(join(dir, ".uploads", "left-behind"), "half an archive");
  const store = await open(dir);
  assert.deepEqual(await readdir(join(dir, ".uploads")), []);
  await store.close();
});

test("keeps archives readable by their owner only", async (t) => {
  const dir = await directory(t);
  const store = await open(dir);
  await store.put("o/w/a", one("content"), put);
  const [file = ""] = await readdir(join(dir, "o", "w"));
  assert.equal((await stat(join(dir, "o", "w", file))).mode & 0o777, 0o600);
  assert.equal((await stat(join(dir, "o"))).mode & 0o777, 0o700);
});

test("reports a file that is shorter than the size in its name", async (t) => {
  const dir = await directory(t);
  const store = await open(dir);
  await store.put("o/w/a", one("content"), put);
  const [file = ""] = await readdir(join(dir, "o", "w"));
  await writeFile(join(dir, "o", "w", file), "con");
  await assert.rejects(
    async () => {
      for await (const _ of store.read("o/w/a", { offsetBytes: 0, signal: never }));
    },
    { code: "INTERNAL", message: /is damaged/ },
  );
});

test("ends a write in progress when it closes", async (t) => {
  const dir = await directory(t);
  const store = await open(dir);
  const begun = Promise.withResolvers<void>();
  const silent = async function* () {
    yield Buffer.from("a beginning");
    begun.resolve();
    await new Promise(() => {});
  };
  const writing = assert.rejects(store.put("o/w/a", silent(), put), { code: "UNAVAILABLE" });
  await begun.promise;
  await store.close();
  await writing;
  assert.deepEqual(await readdir(join(dir, ".uploads")), []);
});

test("ends a read in progress when it closes", async (t) => {
  const store = await open(await directory(t));
  const large = async function* () {
    for (let part = 0; part < 16; part++) yield Buffer.alloc(1024 * 1024);
  };
  await store.put("o/w/a", large(), put);
  const reading = store.read("o/w/a", { offsetBytes: 0, signal: never });
  assert.equal((await reading.next()).done, false);
  await store.close();
  await assert.rejects(async () => reading.next(), { code: "UNAVAILABLE" });
});

test("stores and deletes objects in the same directory concurrently", async (t) => {
  const dir = await directory(t);
  const store = await open(dir);
  const works = Array.from({ length: 40 }, async (_, index) => {
    const object = `o/w${index % 2}/a${index}`;
    await store.put(object, one("content"), put);
    await store.delete(object);
  });
  await Promise.all(works);
  assert.deepEqual((await readdir(dir)).sort(), [".uploads"]);
});

async function* one(text: string) {
  yield Buffer.from(text);
}

async function directory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "forage-content-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

function open(
  dir: string,
  given: Partial<DirectoryContentStoreOptions> = {},
): Promise<DirectoryContentStore> {
  return DirectoryContentStore.open({
    name: "main",
    dir,
    randomName: (length) => randomBytes(length).toString("hex").slice(0, length),
    freeBytes: async () => 1024 ** 4,
    reserveBytes: 0,
    ...given,
  });
}
