import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import type { ContentStore, PutOptions } from "./content-store.ts";

export interface ContentStoreFixture {
  readonly store: ContentStore;
  readonly dispose: () => Promise<void>;
}

const LIMIT = { timeout: 180_000 };
const never = new AbortController().signal;

/** Declares the `node:test` tests that every implementation of the content store must pass. */
export function contentStoreConformance(engine: string, open: () => Promise<ContentStoreFixture>): void {
  const cases = (name: string, run: (store: ContentStore) => Promise<void>): void => {
    test(name, LIMIT, async () => {
      const { store, dispose } = await open();
      try {
        await run(store);
      } finally {
        await store.close();
        await dispose();
      }
    });
  };
  describe(`${engine} content store`, () => {
    describe("writes and reads", () => readCases(cases));
    describe("refused writes", () => refusalCases(cases));
    describe("listing and deletion", () => listCases(cases));
  });
}

type Cases = (name: string, run: (store: ContentStore) => Promise<void>) => void;

function readCases(cases: Cases): void {
  cases("reads an object from the beginning and from an offset", async (store) => {
    const bytes = randomBytes(700_000);
    const stored = await put(store, "o1/w1/a.tar.zst", bytes);
    assert.partialDeepStrictEqual(stored, { object: "o1/w1/a.tar.zst", ...digestOf(bytes) });
    assert.deepEqual(await read(store, "o1/w1/a.tar.zst"), bytes);
    assert.deepEqual(await read(store, "o1/w1/a.tar.zst", 699_999), bytes.subarray(699_999));
    assert.equal((await read(store, "o1/w1/a.tar.zst", 700_000)).length, 0);
  });

  cases("stores an archive that is larger than all buffers in between", async (store) => {
    const part = randomBytes(1024 * 1024);
    const count = 20;
    const hash = createHash("sha256");
    const chunks = async function* () {
      for (let index = 0; index < count; index++) {
        hash.update(part);
        yield part;
      }
    };
    const stored = await store.put("o1/w1/large", chunks(), options());
    assert.equal(stored.sizeBytes, count * part.length);
    assert.equal(stored.sha256, hash.digest("hex"));
    const back = createHash("sha256");
    for await (const chunk of store.read("o1/w1/large", { offsetBytes: 0, signal: never }))
      back.update(chunk);
    assert.equal(back.digest("hex"), stored.sha256);
  });

  cases("stores an empty archive", async (store) => {
    await put(store, "o1/w1/empty", Buffer.alloc(0));
    assert.equal((await read(store, "o1/w1/empty")).length, 0);
    assert.partialDeepStrictEqual(await store.stat("o1/w1/empty"), digestOf(Buffer.alloc(0)));
  });

  cases("replaces an object of the same name", async (store) => {
    await put(store, "o1/w1/a", Buffer.from("old content"));
    await put(store, "o1/w1/a", Buffer.from("new"));
    assert.equal((await read(store, "o1/w1/a")).toString(), "new");
    assert.partialDeepStrictEqual(await store.stat("o1/w1/a"), digestOf(Buffer.from("new")));
    assert.deepEqual(await namesOf(store, ""), ["o1/w1/a"]);
  });

  cases("reports a missing object", async (store) => {
    assert.equal(await store.stat("o1/w1/none"), undefined);
    await assert.rejects(read(store, "o1/w1/none"), { code: "NOT_FOUND" });
  });

  cases("refuses an offset beyond the end", async (store) => {
    await put(store, "o1/w1/a", Buffer.from("12345"));
    await assert.rejects(read(store, "o1/w1/a", 6), { code: "OUT_OF_RANGE" });
    await assert.rejects(read(store, "o1/w1/a", -1), { code: "OUT_OF_RANGE" });
  });
}

function refusalCases(cases: Cases): void {
  cases("keeps no part of an archive that fails its verification", async (store) => {
    const verify: PutOptions["verify"] = () => {
      throw new Error("the digest differs");
    };
    await assert.rejects(put(store, "o1/w1/a", randomBytes(10_000), { verify }), /the digest differs/);
    assert.equal(await store.stat("o1/w1/a"), undefined);
    assert.deepEqual(await namesOf(store, ""), []);
  });

  cases("keeps the former object when its replacement fails", async (store) => {
    await put(store, "o1/w1/a", Buffer.from("good"));
    const verify: PutOptions["verify"] = () => {
      throw new Error("the digest differs");
    };
    await assert.rejects(put(store, "o1/w1/a", Buffer.from("bad"), { verify }));
    assert.equal((await read(store, "o1/w1/a")).toString(), "good");
  });

  cases("keeps no part of an archive whose stream fails", async (store) => {
    const breaking = async function* () {
      yield randomBytes(6 * 1024 * 1024);
      throw new Error("the stream broke");
    };
    await assert.rejects(store.put("o1/w1/a", breaking(), options()), /the stream broke/);
    assert.equal(await store.stat("o1/w1/a"), undefined);
    assert.deepEqual(await namesOf(store, ""), []);
  });

  cases("refuses an archive that exceeds the limit", async (store) => {
    await assert.rejects(put(store, "o1/w1/a", randomBytes(1_001), { maxBytes: 1_000 }), {
      code: "RESOURCE_EXHAUSTED",
    });
    assert.equal(await store.stat("o1/w1/a"), undefined);
  });

  cases("ends a cancelled write at once although its source is silent", async (store) => {
    const cancel = new AbortController();
    const silent = async function* () {
      yield Buffer.from("a beginning");
      cancel.abort();
      await new Promise(() => {});
    };
    const writing = store.put("o1/w1/a", silent(), options({ signal: cancel.signal }));
    await assert.rejects(writing, { code: "ABORTED" });
    assert.equal(await store.stat("o1/w1/a"), undefined);
  });

  cases("refuses invalid object names", async (store) => {
    for (const name of [
      "",
      "/a",
      "a//b",
      "../a",
      "a/../b",
      "a/.hidden",
      "a@b",
      "a b",
      "a/",
      "x".repeat(700),
    ]) {
      await assert.rejects(put(store, name, Buffer.from("x")), { code: "INVALID" }, name);
      await assert.rejects(store.stat(name), { code: "INVALID" }, name);
      await assert.rejects(read(store, name), { code: "INVALID" }, name);
      await assert.rejects(store.delete(name), { code: "INVALID" }, name);
    }
  });
}

function listCases(cases: Cases): void {
  cases("lists the objects under a prefix of whole segments", async (store) => {
    for (const name of ["o1/w1/a", "o1/w1/b", "o1/w10/c", "o2/w1/d"])
      await put(store, name, Buffer.from(name));
    assert.deepEqual(await namesOf(store, "o1/w1/"), ["o1/w1/a", "o1/w1/b"]);
    assert.deepEqual(await namesOf(store, "o1/"), ["o1/w1/a", "o1/w1/b", "o1/w10/c"]);
    assert.deepEqual(await namesOf(store, ""), ["o1/w1/a", "o1/w1/b", "o1/w10/c", "o2/w1/d"]);
    assert.deepEqual(await namesOf(store, "o3/"), []);
    await assert.rejects(namesOf(store, "o1"), { code: "INVALID" });
    await assert.rejects(namesOf(store, "../"), { code: "INVALID" });
  });

  cases("reports sizes and times in listings", async (store) => {
    await put(store, "o1/w1/a", Buffer.alloc(1_234));
    for await (const { object, sizeBytes, storedMs } of store.list("")) {
      assert.deepEqual({ object, sizeBytes }, { object: "o1/w1/a", sizeBytes: 1_234 });
      assert.ok(storedMs > 0);
    }
  });

  cases("deletes an object, and succeeds if it does not exist", async (store) => {
    await put(store, "o1/w1/a", Buffer.from("a"));
    await put(store, "o1/w1/ab", Buffer.from("ab"));
    await store.delete("o1/w1/a");
    await store.delete("o1/w1/a");
    assert.equal(await store.stat("o1/w1/a"), undefined);
    assert.deepEqual(await namesOf(store, ""), ["o1/w1/ab"]);
    await store.delete("o1/w1/ab");
    await put(store, "o1/w1/a", Buffer.from("again"));
    assert.equal((await read(store, "o1/w1/a")).toString(), "again");
  });

  cases("refuses operations after it was closed", async (store) => {
    await store.close();
    await assert.rejects(store.stat("o1/w1/a"), { code: "UNAVAILABLE" });
    await assert.rejects(put(store, "o1/w1/a", Buffer.from("a")), { code: "UNAVAILABLE" });
  });
}

function options(given: Partial<PutOptions> = {}): PutOptions {
  return { maxBytes: 1024 ** 3, verify: () => {}, signal: never, ...given };
}

function put(store: ContentStore, object: string, bytes: Buffer, given: Partial<PutOptions> = {}) {
  const chunks = async function* () {
    for (let at = 0; at < bytes.length; at += 64 * 1024) yield bytes.subarray(at, at + 64 * 1024);
  };
  return store.put(object, chunks(), options(given));
}

async function read(store: ContentStore, object: string, offsetBytes = 0): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.read(object, { offsetBytes, signal: never })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function namesOf(store: ContentStore, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { object } of store.list(prefix)) names.push(object);
  return names.sort();
}

function digestOf(bytes: Buffer): { readonly sizeBytes: number; readonly sha256: string } {
  return { sizeBytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Returns pseudo-random bytes that neither compress nor repeat. */
function randomBytes(count: number): Buffer {
  const random = randomOf(1);
  const bytes = Buffer.alloc(count);
  for (let index = 0; index < count; index++) bytes[index] = random.below(256);
  return bytes;
}
