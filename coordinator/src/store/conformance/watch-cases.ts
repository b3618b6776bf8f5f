import assert from "node:assert/strict";
import type { WatchBatch } from "../store.ts";
import { print, put, putEach, rejectsWith, type StoreFactory, storeCase, take } from "./fixture.ts";

export function watchCases(open: StoreFactory): void {
  delivering(open);
  endingAndResuming(open);
}

function delivering(open: StoreFactory): void {
  storeCase(open, "history first, then what happens, each revision once and whole", async ({ store }) => {
    await store.txn([], [put("a", "1"), put("b", "1")]);
    await store.txn([], [put("a", "2"), { kind: "delete", key: "b" }]);
    const watch = watching(store, "", 1);
    const next = take(watch, 4);
    await store.txn([], [put("c", "3"), put("a", "3")]);
    await store.txn([], [{ kind: "deletePrefix", prefix: "" }]);
    assert.deepEqual((await next).map(print), ["1 +a=1 +b=1", "2 +a=2 -b", "3 +c=3 +a=3", "4 -a -c"]);
  });

  storeCase(open, "an event carries the record as it was then", async ({ store }) => {
    await putEach(store, "a", "a");
    const [first, second] = await take(watching(store, "", 1), 2);
    assert.deepEqual(
      [first, second].map((batch) =>
        batch?.events.map((event) => event.kind === "put" && event.record.version),
      ),
      [[1], [2]],
    );
  });

  storeCase(open, "only the prefix, and only revisions that concern it", async ({ store }) => {
    const watch = watching(store, "p/", 1);
    const next = take(watch, 2);
    await store.txn([], [put("x")]);
    await store.txn([], [put("p/1"), put("x")]);
    await store.txn([], [put("p")]);
    await store.txn([], [put("p/2")]);
    assert.deepEqual((await next).map(print), ["2 +p/1=p/1", "4 +p/2=p/2"]);
  });

  storeCase(open, "starts at the given revision: in the past, now, or later", async ({ store }) => {
    await putEach(store, "a", "b", "c");
    const past = take(watching(store, "", 2), 3);
    const now = take(watching(store, "", 4), 1);
    const later = take(watching(store, "", 5), 1);
    const all = take(watching(store, "", 0), 5);
    await putEach(store, "d", "e");
    assert.deepEqual(revisions(await past), [2, 3, 4]);
    assert.deepEqual(revisions(await now), [4]);
    assert.deepEqual(revisions(await later), [5]);
    assert.deepEqual(revisions(await all), [1, 2, 3, 4, 5]);
  });
}

function endingAndResuming(open: StoreFactory): void {
  storeCase(open, "ends without error when aborted, also while waiting", async ({ store }) => {
    const controller = new AbortController();
    const watch = store.watch("", 1, controller.signal)[Symbol.asyncIterator]();
    const waiting = watch.next();
    controller.abort();
    assert.equal((await waiting).done, true);
    assert.equal((await watch.next()).done, true);
    const never = store.watch("", 1, AbortSignal.abort())[Symbol.asyncIterator]();
    assert.equal((await never.next()).done, true);
  });

  storeCase(open, "breaking out of the loop ends it", async ({ store }) => {
    await putEach(store, "a", "b");
    const seen: number[] = [];
    for await (const batch of store.watch("", 1, new AbortController().signal)) {
      seen.push(batch.revision);
      if (batch.revision === 2) break;
    }
    assert.deepEqual(seen, [1, 2]);
  });

  storeCase(open, "resumed watches receive every change exactly once", async ({ store }) => {
    const seen: number[] = [];
    const writing = putEach(store, ...Array.from({ length: 60 }, (_, i) => `k${i % 7}`));
    while (seen.length < 60) {
      const watch = watching(store, "", (seen.at(-1) ?? 0) + 1);
      seen.push(...revisions(await take(watch, 1 + (seen.length % 5))));
      await watch.return?.();
    }
    await writing;
    assert.deepEqual(
      seen,
      Array.from({ length: 60 }, (_, i) => i + 1),
    );
  });

  storeCase(open, "many watchers see the same", async ({ store }) => {
    const watches = Array.from({ length: 20 }, () => take(watching(store, "", 1), 30));
    await Promise.all(Array.from({ length: 30 }, (_, i) => store.txn([], [put(`k${i % 4}`, `${i}`)])));
    const [first, ...others] = (await Promise.all(watches)).map((batches) => batches.map(print));
    assert.equal(first?.length, 30);
    for (const other of others) assert.deepEqual(other, first);
  });

  storeCase(open, "a start that makes no sense is refused", async ({ store }) => {
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
