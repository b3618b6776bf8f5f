import assert from "node:assert/strict";
import { TXN_BYTES_MAX, TXN_OPS_MAX } from "../limits.ts";
import type { Compare } from "../store.ts";
import { bytes, contents, put, putEach, rejectsWith, type StoreFactory, storeCase } from "./fixture.ts";

export function txnCases(open: StoreFactory): void {
  comparing(open);
  changing(open);
}

function comparing(open: StoreFactory): void {
  storeCase(open, "each change takes the next revision, no change takes none", async ({ store }) => {
    assert.deepEqual(await store.txn([], []), { succeeded: true, revision: 0 });
    assert.deepEqual(await store.txn([], [put("a"), put("b")]), { succeeded: true, revision: 1 });
    assert.deepEqual(await store.txn([], [put("a")]), { succeeded: true, revision: 2 });
    assert.deepEqual(await store.txn([], [{ kind: "delete", key: "x" }]), { succeeded: true, revision: 2 });
    assert.deepEqual(await store.txn([{ kind: "absent", key: "a" }], [put("a")]), {
      succeeded: false,
      revision: 2,
    });
    assert.deepEqual(await store.txn([], [{ kind: "delete", key: "a" }]), { succeeded: true, revision: 3 });
    assert.equal(store.revision, 3);
  });

  storeCase(open, "every kind of compare", async ({ store }) => {
    await putEach(store, "other", "a", "a");
    const holds: Compare[] = [
      { kind: "exists", key: "a" },
      { kind: "absent", key: "x" },
      { kind: "modRevision", key: "a", revision: 3 },
      { kind: "modRevision", key: "x", revision: 0 },
      { kind: "createRevision", key: "a", revision: 2 },
      { kind: "createRevision", key: "x", revision: 0 },
      { kind: "version", key: "a", version: 2 },
      { kind: "version", key: "x", version: 0 },
      { kind: "value", key: "a", value: bytes("a") },
    ];
    const fails: Compare[] = [
      { kind: "exists", key: "x" },
      { kind: "absent", key: "a" },
      { kind: "modRevision", key: "a", revision: 2 },
      { kind: "modRevision", key: "x", revision: 1 },
      { kind: "createRevision", key: "a", revision: 3 },
      { kind: "version", key: "a", version: 1 },
      { kind: "value", key: "a", value: bytes("b") },
      { kind: "value", key: "x", value: bytes("") },
    ];
    assert.equal((await store.txn(holds, [])).succeeded, true);
    for (const compare of fails) {
      assert.equal(
        (await store.txn([...holds, compare], [put("z")])).succeeded,
        false,
        JSON.stringify(compare),
      );
    }
    assert.equal(store.revision, 3);
  });

  storeCase(open, "a compare of what can't be a key is refused", async ({ store }) => {
    await rejectsWith("INVALID_ARGUMENT", store.txn([{ kind: "absent", key: "" }], [put("a")]));
    await rejectsWith(
      "INVALID_ARGUMENT",
      store.txn([{ kind: "version", key: "a\0b", version: 0 }], [put("a")]),
    );
    assert.equal(store.revision, 0);
  });

  storeCase(open, "all or nothing", async ({ store }) => {
    await store.txn([], [put("a", "1"), put("b", "1")]);
    const refused = [{ kind: "modRevision", key: "b", revision: 99 } as const];
    await store.txn(refused, [put("a", "2"), { kind: "delete", key: "b" }]);
    assert.deepEqual(await contents(store), { a: "1", b: "1" });
    await store.txn([], [put("a", "2"), { kind: "delete", key: "b" }, put("c", "2")]);
    assert.deepEqual(await contents(store), { a: "2", c: "2" });
  });
}

function changing(open: StoreFactory): void {
  storeCase(open, "a prefix is deleted in one revision", async ({ store }) => {
    await putEach(store, "p/1", "p/2", "q", "p");
    const ops = [
      { kind: "deletePrefix", prefix: "p/" } as const,
      { kind: "delete", key: "p/1" } as const,
      put("r"),
    ];
    assert.equal((await store.txn([], ops)).revision, 5);
    assert.deepEqual(Object.keys(await contents(store)), ["p", "q", "r"]);
    assert.equal((await store.txn([], [{ kind: "deletePrefix", prefix: "p/" }])).revision, 5);
    await store.txn([], [{ kind: "deletePrefix", prefix: "" }]);
    assert.deepEqual(await contents(store), {});
  });

  storeCase(open, "two ops on one key are refused unless both delete", async ({ store }) => {
    await putEach(store, "a");
    const remove = { kind: "delete", key: "a" } as const;
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [put("a"), put("a")]));
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [put("a"), remove]));
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [{ kind: "deletePrefix", prefix: "" }, put("a")]));
    await store.txn([], [remove, remove]);
    assert.equal(await store.get("a"), undefined);
  });

  storeCase(open, "limits as etcd's", async ({ store }) => {
    const puts = (count: number) => Array.from({ length: count }, (_, i) => put(`k${i}`));
    const compares = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ kind: "absent", key: `k${i}` }) as const);
    await rejectsWith("TOO_LARGE", store.txn([], puts(TXN_OPS_MAX + 1)));
    await rejectsWith("TOO_LARGE", store.txn(compares(TXN_OPS_MAX + 1), []));
    const large = (size: number) => ({ kind: "put", key: "big", value: new Uint8Array(size) }) as const;
    await rejectsWith("TOO_LARGE", store.txn([], [large(TXN_BYTES_MAX + 1)]));
    await rejectsWith("TOO_LARGE", store.txn([], [{ kind: "put", key: "k".repeat(1025), value: bytes("") }]));
    assert.equal(store.revision, 0);
    assert.equal((await store.txn(compares(TXN_OPS_MAX), puts(TXN_OPS_MAX))).succeeded, true);
    await store.txn([], [large(TXN_BYTES_MAX - 3)]);
    assert.equal((await store.get("big"))?.value.byteLength, TXN_BYTES_MAX - 3);
  });

  storeCase(open, "of many that race for one key, one wins", async ({ store }) => {
    const claims = Array.from({ length: 50 }, (_, i) =>
      store.txn([{ kind: "absent", key: "lock" }], [put("lock", `${i}`)]),
    );
    const results = await Promise.all(claims);
    assert.equal(results.filter((result) => result.succeeded).length, 1);
    assert.ok(results.every((result) => result.revision === 1));
  });

  storeCase(
    open,
    "what was answered is seen by the next read, also a failed compare's reason",
    async ({ store }) => {
      const winner = store.txn([{ kind: "absent", key: "a" }], [put("a", "1")]);
      const loser = await store.txn([{ kind: "absent", key: "a" }], [put("a", "2")]);
      assert.equal(loser.succeeded, false);
      assert.deepEqual(await contents(store), { a: "1" });
      await winner;
    },
  );
}
