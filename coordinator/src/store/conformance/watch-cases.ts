import assert from "node:assert/strict";
import type { WatchBatch } from "../store.ts";
import { nextBatches, print, put, putEach, rejectsWith, type StoreFactory, storeCase } from "./fixture.ts";

export function watchCases(open: StoreFactory): void {
  delivering(open);
  endingAndResuming(open);
}

function delivering(open: StoreFactory): void {
  storeCase(
    open,
    "yields the history and then new changes, each revision once and complete",
    async ({ store }) => {
      await store.txn([], [put("a", "1"), put("b", "1")]);
      await store.txn([], [put("a", "2"), { type: "delete", key: "b" }]);
      const watch = watching(store, "", 1);
      const next = nextBatches(watch, 4);
      await store.txn([], [put("c", "3"), put("a", "3")]);
      await store.txn([], [{ type: "delete-prefix", prefix: "" }]);
      assert.deepEqual((await next).map(print), ["1 +a=1 +b=1", "2 +a=2 -b", "3 +c=3 +a=3", "4 -a -c"]);
    },
  );

  storeCase(open, "an event contains the record at its revision", async ({ store }) => {
    await putEach(store, "a", "a");
    const [first, second] = await nextBatches(watching(store, "", 1), 2);
    assert.deepEqual(
      [first, second].map((batch) =>
        batch?.events.map((event) => event.type === "put" && event.record.version),
      ),
      [[1], [2]],
    );
  });

  storeCase(
    open,
    "yields only changes under the prefix, and skips revisions without any",
    async ({ store }) => {
      const watch = watching(store, "p/", 1);
      const next = nextBatches(watch, 2);
      await store.txn([], [put("x")]);
      await store.txn([], [put("p/1"), put("x")]);
      await store.txn([], [put("p")]);
      await store.txn([], [put("p/2")]);
      assert.deepEqual((await next).map(print), ["2 +p/1=p/1", "4 +p/2=p/2"]);
    },
  );

  storeCase(open, "starts at a given revision in the past, now or in the future", async ({ store }) => {
    await putEach(store, "a", "b", "c");
    const past = nextBatches(watching(store, "", 2), 3);
    const now = nextBatches(watching(store, "", 4), 1);
    const later = nextBatches(watching(store, "", 5), 1);
    const all = nextBatches(watching(store, "", 0), 5);
    await putEach(store, "d", "e");
    assert.deepEqual(revisions(await past), [2, 3, 4]);
    assert.deepEqual(revisions(await now), [4]);
    assert.deepEqual(revisions(await later), [5]);
    assert.deepEqual(revisions(await all), [1, 2, 3, 4, 5]);
  });
}

function endingAndResuming(open: StoreFactory): void {
  storeCase(open, "ends without an error when aborted, also while it waits", async ({ store }) => {
    const controller = new AbortController();
    const watch = store.watch("", 1, controller.signal)[Symbol.asyncIterator]();
    const waiting = watch.next();
    controller.abort();
    assert.equal((await waiting).done, true);
    assert.equal((await watch.next()).done, true);
    const never = store.watch("", 1, AbortSignal.abort())[Symbol.asyncIterator]();
    assert.equal((await never.next()).done, true);
  });

  storeCase(open, "ends when its loop is left", async ({ store }) => {
    await putEach(store, "a", "b");
    const seen: number[] = [];
    for await (const batch of store.watch("", 1, new AbortController().signal)) {
      seen.push(batch.revision);
      if (batch.revision === 2) break;
    }
    assert.deepEqual(seen, [1, 2]);
  });

  storeCase(open, "receives every change exactly once over resumed watches", async ({ store }) => {
    const seen: number[] = [];
    const writing = putEach(store, ...Array.from({ length: 60 }, (_, i) => `k${i % 7}`));
    while (seen.length < 60) {
      const watch = watching(store, "", (seen.at(-1) ?? 0) + 1);
      seen.push(...revisions(await nextBatches(watch, 1 + (seen.length % 5))));
      await watch.return?.();
    }
    await writing;
    assert.deepEqual(
      seen,
      Array.from({ length: 60 }, (_, i) => i + 1),
    );
  });

  storeCase(open, "many watchers receive the same changes", async ({ store }) => {
    const watches = Array.from({ length: 20 }, () => nextBatches(watching(store, "", 1), 30));
    await Promise.all(Array.from({ length: 30 }, (_, i) => store.txn([], [put(`k${i % 4}`, `${i}`)])));
    const [first, ...others] = (await Promise.all(watches)).map((batches) => batches.map(print));
    assert.equal(first?.length, 30);
    for (const other of others) assert.deepEqual(other, first);
  });

  storeCase(open, "rejects an invalid start revision", async ({ store }) => {
    await rejectsWith("INVALID_ARGUMENT", watching(store, "", -1).next());
    await rejectsWith("INVALID_ARGUMENT", watching(store, "\n", 1).next());
  });
}

function watching(
  store: Parameters<Parameters<typeof storeCase>[2]>[0]["store"],
  prefix: string,
  from: number,
): AsyncIterator<WatchBatch> {
  return store.watch(prefix, from, new AbortController().signal)[Symbol.asyncIterator]();
}

function revisions(batches: readonly WatchBatch[]): number[] {
  return batches.map((batch) => batch.revision);
}
