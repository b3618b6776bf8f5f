import assert from "node:assert/strict";
import { TXN_BYTES_MAX, TXN_OPS_MAX } from "../limits.ts";
import type { Compare } from "../store.ts";
import { bytes, contents, put, putEach, rejectsWith, type StoreFactory, storeCase } from "./fixture.ts";

export function txnCases(open: StoreFactory): void {
  comparing(open);
  changing(open);
}

function comparing(open: StoreFactory): void {
  storeCase(
    open,
    "a transaction with changes gets the next revision, one without changes none",
    async ({ store }) => {
      assert.deepEqual(await store.txn([], []), { succeeded: true, revision: 0 });
      assert.deepEqual(await store.txn([], [put("a"), put("b")]), { succeeded: true, revision: 1 });
      assert.deepEqual(await store.txn([], [put("a")]), { succeeded: true, revision: 2 });
      assert.deepEqual(await store.txn([], [{ type: "delete", key: "x" }]), { succeeded: true, revision: 2 });
      assert.deepEqual(await store.txn([{ type: "absent", key: "a" }], [put("a")]), {
        succeeded: false,
        revision: 2,
      });
      assert.deepEqual(await store.txn([], [{ type: "delete", key: "a" }]), { succeeded: true, revision: 3 });
      assert.equal(store.revision, 3);
    },
  );

  storeCase(open, "evaluates every kind of compare", async ({ store }) => {
    await putEach(store, "other", "a", "a");
    const holds: Compare[] = [
      { type: "exists", key: "a" },
      { type: "absent", key: "x" },
      { type: "mod-revision", key: "a", revision: 3 },
      { type: "mod-revision", key: "x", revision: 0 },
      { type: "create-revision", key: "a", revision: 2 },
      { type: "create-revision", key: "x", revision: 0 },
      { type: "version", key: "a", version: 2 },
      { type: "version", key: "x", version: 0 },
      { type: "value", key: "a", value: bytes("a") },
    ];
    const fails: Compare[] = [
      { type: "exists", key: "x" },
      { type: "absent", key: "a" },
      { type: "mod-revision", key: "a", revision: 2 },
      { type: "mod-revision", key: "x", revision: 1 },
      { type: "create-revision", key: "a", revision: 3 },
      { type: "version", key: "a", version: 1 },
      { type: "value", key: "a", value: bytes("b") },
      { type: "value", key: "x", value: bytes("") },
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

  storeCase(open, "rejects compares of invalid keys", async ({ store }) => {
    await rejectsWith("INVALID_ARGUMENT", store.txn([{ type: "absent", key: "" }], [put("a")]));
    await rejectsWith(
      "INVALID_ARGUMENT",
      store.txn([{ type: "version", key: "a\0b", version: 0 }], [put("a")]),
    );
    assert.equal(store.revision, 0);
  });

  storeCase(open, "all or nothing", async ({ store }) => {
    await store.txn([], [put("a", "1"), put("b", "1")]);
    const refused = [{ type: "mod-revision", key: "b", revision: 99 } as const];
    await store.txn(refused, [put("a", "2"), { type: "delete", key: "b" }]);
    assert.deepEqual(await contents(store), { a: "1", b: "1" });
    await store.txn([], [put("a", "2"), { type: "delete", key: "b" }, put("c", "2")]);
    assert.deepEqual(await contents(store), { a: "2", c: "2" });
  });
}

function changing(open: StoreFactory): void {
  storeCase(open, "deletes a prefix in one revision", async ({ store }) => {
    await putEach(store, "p/1", "p/2", "q", "p");
    const ops = [
      { type: "delete-prefix", prefix: "p/" } as const,
      { type: "delete", key: "p/1" } as const,
      put("r"),
    ];
    assert.equal((await store.txn([], ops)).revision, 5);
    assert.deepEqual(Object.keys(await contents(store)), ["p", "q", "r"]);
    assert.equal((await store.txn([], [{ type: "delete-prefix", prefix: "p/" }])).revision, 5);
    await store.txn([], [{ type: "delete-prefix", prefix: "" }]);
    assert.deepEqual(await contents(store), {});
  });

  storeCase(open, "rejects two ops on one key unless both delete", async ({ store }) => {
    await putEach(store, "a");
    const remove = { type: "delete", key: "a" } as const;
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [put("a"), put("a")]));
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [put("a"), remove]));
    await rejectsWith("INVALID_ARGUMENT", store.txn([], [{ type: "delete-prefix", prefix: "" }, put("a")]));
    await store.txn([], [remove, remove]);
    assert.equal(await store.get("a"), undefined);
  });

  storeCase(open, "limits as etcd's", async ({ store }) => {
    const puts = (count: number) => Array.from({ length: count }, (_, i) => put(`k${i}`));
    const compares = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ type: "absent", key: `k${i}` }) as const);
    await rejectsWith("TOO_LARGE", store.txn([], puts(TXN_OPS_MAX + 1)));
    await rejectsWith("TOO_LARGE", store.txn(compares(TXN_OPS_MAX + 1), []));
    const large = (size: number) => ({ type: "put", key: "big", value: new Uint8Array(size) }) as const;
    await rejectsWith("TOO_LARGE", store.txn([], [large(TXN_BYTES_MAX + 1)]));
    await rejectsWith("TOO_LARGE", store.txn([], [{ type: "put", key: "k".repeat(1025), value: bytes("") }]));
    assert.equal(store.revision, 0);
    assert.equal((await store.txn(compares(TXN_OPS_MAX), puts(TXN_OPS_MAX))).succeeded, true);
    await store.txn([], [large(TXN_BYTES_MAX - 3)]);
    assert.equal((await store.get("big"))?.value.byteLength, TXN_BYTES_MAX - 3);
  });

  storeCase(open, "of concurrent transactions that create one key, one succeeds", async ({ store }) => {
    const claims = Array.from({ length: 50 }, (_, i) =>
      store.txn([{ type: "absent", key: "lock" }], [put("lock", `${i}`)]),
    );
    const results = await Promise.all(claims);
    assert.equal(results.filter((result) => result.succeeded).length, 1);
    assert.ok(results.every((result) => result.revision === 1));
  });

  storeCase(
    open,
    "a returned result is visible to the next read, also the reason of a failed compare",
    async ({ store }) => {
      const winner = store.txn([{ type: "absent", key: "a" }], [put("a", "1")]);
      const loser = await store.txn([{ type: "absent", key: "a" }], [put("a", "2")]);
      assert.equal(loser.succeeded, false);
      assert.deepEqual(await contents(store), { a: "1" });
      await winner;
    },
  );
}
