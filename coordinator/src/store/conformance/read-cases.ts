import assert from "node:assert/strict";
import { bytes, contents, put, putEach, rejectsWith, type StoreFactory, storeCase, text } from "./fixture.ts";

export function readCases(open: StoreFactory): void {
  records(open);
  revisionsAndRules(open);
}

function records(open: StoreFactory): void {
  storeCase(open, "an empty store has revision 0 and no records", async ({ store }) => {
    assert.equal(store.revision, 0);
    assert.equal(store.compactRevision, 0);
    assert.equal(await store.get("a"), undefined);
    assert.deepEqual(await store.range(""), { records: [], revision: 0, more: false });
  });

  storeCase(open, "a record has its revisions and its version", async ({ store }) => {
    await putEach(store, "a", "b", "a");
    const record = await store.get("a");
    assert.ok(record);
    assert.deepEqual(
      { ...record, value: text(record.value) },
      { key: "a", value: "a", createRevision: 1, modRevision: 3, version: 2 },
    );
  });

  storeCase(open, "the version of a key that is created again starts at 1", async ({ store }) => {
    await putEach(store, "a", "a");
    await store.txn([], [{ type: "delete", key: "a" }]);
    assert.equal(await store.get("a"), undefined);
    await putEach(store, "a");
    const record = await store.get("a");
    assert.deepEqual([record?.createRevision, record?.modRevision, record?.version], [4, 4, 1]);
  });

  storeCase(open, "range returns exactly the keys with the prefix, ordered by key", async ({ store }) => {
    await putEach(store, "n/b", "n", "n/a", "n0", "m/z", "n/a/1", "o");
    assert.deepEqual(Object.keys(await contents(store, "n/")), ["n/a", "n/a/1", "n/b"]);
    assert.deepEqual(Object.keys(await contents(store)), ["m/z", "n", "n/a", "n/a/1", "n/b", "n0", "o"]);
  });

  storeCase(open, "the pages of a range add up to the whole range", async ({ store }) => {
    const keys = Array.from({ length: 25 }, (_, i) => `k/${String(i).padStart(2, "0")}`);
    await store.txn(
      [],
      keys.map((key) => put(key)),
    );
    const seen: string[] = [];
    let after = "";
    for (let more = true; more; ) {
      const page = await store.range("k/", { limit: 10, after, at: 1 });
      seen.push(...page.records.map((record) => record.key));
      after = seen.at(-1) ?? "";
      more = page.more;
      await store.txn([], [put(`k/00${seen.length}`)]);
    }
    assert.deepEqual(seen, keys);
    assert.equal((await store.range("k/0", { limit: 100 })).more, false);
  });
}

function revisionsAndRules(open: StoreFactory): void {
  storeCase(open, "reads at a revision return the state at that revision", async ({ store }) => {
    await store.txn([], [put("a", "1")]);
    await store.txn([], [put("a", "2"), put("b", "2")]);
    await store.txn([], [{ type: "delete", key: "a" }]);
    await store.txn([], [put("a", "4")]);
    assert.deepEqual(await contents(store, "", 0), {});
    assert.deepEqual(await contents(store, "", 1), { a: "1" });
    assert.deepEqual(await contents(store, "", 2), { a: "2", b: "2" });
    assert.deepEqual(await contents(store, "", 3), { b: "2" });
    assert.deepEqual(await contents(store, "", 4), { a: "4", b: "2" });
    assert.equal(text((await store.get("a", { at: 2 }))?.value), "2");
    assert.equal((await store.range("", { at: 2 })).revision, 2);
    await rejectsWith("FUTURE_REVISION", store.range("", { at: 5 }));
    await rejectsWith("FUTURE_REVISION", store.get("a", { at: 5 }));
  });

  storeCase(open, "returns values of any bytes unchanged", async ({ store }) => {
    const pool = new Uint8Array([9, 0, 255, 9]);
    const values = { empty: new Uint8Array(0), zero: new Uint8Array([0]), slice: pool.subarray(1, 3) };
    await store.txn(
      [],
      Object.entries(values).map(([key, value]) => ({ type: "put", key, value }) as const),
    );
    pool.fill(7);
    assert.deepEqual([...((await store.get("slice"))?.value ?? [])], [0, 255]);
    assert.deepEqual([...((await store.get("empty"))?.value ?? [1])], []);
    assert.deepEqual([...((await store.get("zero"))?.value ?? [])], [0]);
  });

  storeCase(open, "rejects invalid keys", async ({ store }) => {
    await rejectsWith("INVALID_ARGUMENT", store.get(""));
    await rejectsWith("INVALID_ARGUMENT", store.get("a\0b"));
    await rejectsWith("INVALID_ARGUMENT", store.get("\ud800"));
    await rejectsWith("INVALID_ARGUMENT", store.range("a\n"));
    await rejectsWith("INVALID_ARGUMENT", store.range("a", { limit: 0 }));
    await rejectsWith("INVALID_ARGUMENT", store.get("a", { at: -1 }));
    await rejectsWith("INVALID_ARGUMENT", store.get("a", { at: 0.5 }));
    await rejectsWith("TOO_LARGE", store.get("é".repeat(513)));
    await store.txn([], [{ type: "put", key: "é".repeat(512), value: bytes("x") }]);
    assert.equal(text((await store.get("é".repeat(512)))?.value), "x");
  });

  storeCase(open, "rejects every call after close", async ({ store }) => {
    const lease = await store.lease(1000);
    const watch = store.watch("", 1, new AbortController().signal)[Symbol.asyncIterator]();
    const waiting = rejectsWith("CLOSED", watch.next());
    await store.close();
    await store.close();
    await waiting;
    assert.deepEqual(store.health(), { status: "closed" });
    await rejectsWith("CLOSED", store.get("a"));
    await rejectsWith("CLOSED", store.range(""));
    await rejectsWith("CLOSED", store.txn([], [put("a")]));
    await rejectsWith("CLOSED", store.compact(0));
    await rejectsWith("CLOSED", store.lease(1000));
    await rejectsWith("CLOSED", lease.keepAlive());
    const late = store.watch("", 1, new AbortController().signal)[Symbol.asyncIterator]();
    await rejectsWith("CLOSED", late.next());
  });
}
