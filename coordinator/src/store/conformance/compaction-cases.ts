import assert from "node:assert/strict";
import {
  contents,
  nextBatches,
  print,
  put,
  putEach,
  rejectsWith,
  type StoreFactory,
  storeCase,
  until,
} from "./fixture.ts";

const AGE_MS = 60_000;

export function compactionCases(open: StoreFactory): void {
  storeCase(open, "removes the history before the revision, and keeps the state at it", async ({ store }) => {
    await store.txn([], [put("a", "1"), put("b", "1")]);
    await store.txn([], [put("a", "2"), { type: "delete", key: "b" }]);
    await store.txn([], [put("a", "3"), put("b", "3")]);
    await store.compact(2);
    assert.equal(store.compactRevision, 2);
    assert.equal(store.revision, 3);
    assert.equal((await rejectsWith("COMPACTED", store.range("", { at: 1 }))).compactRevision, 2);
    await rejectsWith("COMPACTED", store.get("a", { at: 1 }));
    assert.deepEqual(await contents(store, "", 2), { a: "2" });
    assert.deepEqual(await contents(store), { a: "3", b: "3" });
    const record = await store.get("a");
    assert.deepEqual([record?.createRevision, record?.version], [1, 3]);
  });

  storeCase(
    open,
    "fails watches before the revision with COMPACTED, and continues later ones",
    async ({ store }) => {
      const signal = new AbortController().signal;
      await putEach(store, "a", "b", "c", "d");
      const early = store.watch("", 1, signal)[Symbol.asyncIterator]();
      await nextBatches(early, 4);
      await store.compact(3);
      const error = await rejectsWith("COMPACTED", store.watch("", 2, signal)[Symbol.asyncIterator]().next());
      assert.equal(error.compactRevision, 3);
      const late = store.watch("", 4, signal)[Symbol.asyncIterator]();
      assert.deepEqual((await nextBatches(late, 1)).map(print), ["4 +d=d"]);
      await store.txn([], [put("e")]);
      assert.deepEqual((await nextBatches(early, 1)).map(print), ["5 +e=e"]);
    },
  );

  storeCase(
    open,
    "fails a watcher with unread changes with SLOW, and no watcher without any",
    async ({ store }) => {
      const signal = new AbortController().signal;
      const slow = store.watch("k", 1, signal)[Symbol.asyncIterator]();
      const idle = store.watch("other", 1, signal)[Symbol.asyncIterator]();
      await putEach(store, "k1", "k2", "k3");
      assert.equal((await nextBatches(slow, 1))[0]?.revision, 1);
      await store.compact(2);
      await rejectsWith("SLOW", slow.next());
      assert.equal((await slow.next()).done, true);
      await store.txn([], [put("other")]);
      assert.deepEqual((await nextBatches(idle, 1)).map(print), ["4 +other=other"]);
    },
  );

  storeCase(open, "is idempotent, and rejects revisions in the future", async ({ store }) => {
    await putEach(store, "a", "b");
    await rejectsWith("FUTURE_REVISION", store.compact(3));
    await rejectsWith("INVALID_ARGUMENT", store.compact(-1));
    await store.compact(2);
    await store.compact(2);
    await store.compact(1);
    assert.equal(store.compactRevision, 2);
    assert.deepEqual(await contents(store), { a: "a", b: "b" });
  });
  automaticCases(open);
}

function automaticCases(open: StoreFactory): void {
  storeCase(
    open,
    "compacts the history automatically when it exceeds its limit",
    async ({ store }) => {
      const keys = Array.from({ length: 300 }, (_, i) => `k${i % 10}`);
      await Promise.all(keys.map((key, i) => store.txn([], [put(key, `${i}`)])));
      await until(() => store.compactRevision >= 190, "history is cut");
      assert.ok(store.compactRevision <= 200);
      assert.equal(Object.keys(await contents(store)).length, 10);
      assert.equal((await contents(store, "", 200)).k9, "199");
    },
    { historyRevisions: 100 },
  );

  storeCase(
    open,
    "compacts the history that has reached its age, and keeps what is younger",
    async ({ store, clock }) => {
      await store.txn([], [put("a"), put("b")]);
      clock.advance(AGE_MS - 1);
      await store.txn([], [put("b", "later")]);
      assert.equal(store.compactRevision, 0);
      clock.advance(1);
      await until(() => store.compactRevision === 1, "the first revision is compacted");
      assert.deepEqual(await contents(store, "", 1), { a: "a", b: "b" });
      clock.advance(AGE_MS - 1);
      assert.equal(store.compactRevision, 1);
      clock.advance(1);
      await until(() => store.compactRevision === 2, "the second revision is compacted");
      assert.deepEqual(await contents(store), { a: "a", b: "later" });
      await rejectsWith("COMPACTED", store.get("b", { at: 1 }));
      // The next change begins a new history.
      await store.txn([], [put("c")]);
      clock.advance(AGE_MS);
      await until(() => store.compactRevision === 3, "the next revision is compacted");
    },
    { historyAgeMs: AGE_MS },
  );
}
