import assert from "node:assert/strict";
import { LEASE_KEYS_MAX, TXN_OPS_MAX } from "../limits.ts";
import type { Lease, LeaseId, Op } from "../store.ts";
import {
  bytes,
  contents,
  nextBatches,
  print,
  put,
  rejectsWith,
  type StoreFactory,
  storeCase,
  until,
} from "./fixture.ts";

export function leaseCases(open: StoreFactory): void {
  lasting(open);
  belonging(open);
}

function lasting(open: StoreFactory): void {
  storeCase(open, "deletes the keys of an expired lease in one revision", async ({ store, clock }) => {
    const lease = await store.lease(5000);
    assert.equal(store.revision, 0);
    await store.txn([], [under(lease, "a"), under(lease, "b"), put("c")]);
    assert.equal((await store.get("a"))?.lease, lease.id);
    clock.advance(4999);
    assert.deepEqual(Object.keys(await contents(store)), ["a", "b", "c"]);
    clock.advance(1);
    await until(() => store.revision === 2, "the lease ends");
    assert.deepEqual(Object.keys(await contents(store)), ["c"]);
    const watch = store.watch("", 2, new AbortController().signal)[Symbol.asyncIterator]();
    assert.deepEqual((await nextBatches(watch, 1)).map(print), ["2 -a -b"]);
    await rejectsWith("LEASE_NOT_FOUND", lease.keepAlive());
    await rejectsWith("LEASE_NOT_FOUND", store.txn([], [under(lease, "d")]));
    await lease.revoke();
    assert.equal(store.revision, 2);
  });

  storeCase(open, "a lease lasts as long as it is kept alive", async ({ store, clock }) => {
    const [kept, lost] = [await store.lease(1000), await store.lease(1500)];
    await store.txn([], [under(kept, "kept"), under(lost, "lost")]);
    for (let i = 0; i < 10; i++) {
      clock.advance(900);
      await kept.keepAlive();
    }
    await until(() => store.revision === 2, "the other lease ends");
    assert.deepEqual(Object.keys(await contents(store)), ["kept"]);
    clock.advance(1000);
    await until(() => store.revision === 3, "the lease ends");
    assert.deepEqual(await contents(store), {});
  });

  storeCase(open, "revoke deletes the keys at once", async ({ store, clock }) => {
    const lease = await store.lease(1000);
    await store.txn([], [under(lease, "a")]);
    await lease.revoke();
    assert.deepEqual(await contents(store), {});
    assert.equal(store.revision, 2);
    await rejectsWith("LEASE_NOT_FOUND", lease.keepAlive());
    clock.advance(5000);
    assert.equal(store.revision, 2);
  });
}

function belonging(open: StoreFactory): void {
  storeCase(open, "the last put decides to which lease a key belongs", async ({ store, clock }) => {
    const [short, long] = [await store.lease(1000), await store.lease(9000)];
    await store.txn(
      [],
      [under(short, "freed"), under(short, "moved"), under(short, "again"), under(short, "gone")],
    );
    await store.txn([], [put("freed"), under(long, "moved"), { type: "delete", key: "again" }]);
    await store.txn([], [put("again")]);
    clock.advance(1000);
    await until(() => store.revision === 4, "the short lease ends");
    assert.deepEqual(Object.keys(await contents(store)), ["again", "freed", "moved"]);
    clock.advance(8000);
    await until(() => store.revision === 5, "the long lease ends");
    assert.deepEqual(Object.keys(await contents(store)), ["again", "freed"]);
  });

  storeCase(open, "finds a lease by its id until it ends", async ({ store, clock }) => {
    const lease = await store.lease(1000);
    const found = await store.findLease(lease.id);
    assert.equal(found.ttlMs, 1000);
    clock.advance(800);
    await found.keepAlive();
    clock.advance(800);
    await lease.keepAlive();
    clock.advance(1000);
    await rejectsWith("LEASE_NOT_FOUND", store.findLease(lease.id));
    await rejectsWith("LEASE_NOT_FOUND", store.findLease("none" as LeaseId));
  });

  storeCase(open, "limits", async ({ store }) => {
    await rejectsWith("INVALID_ARGUMENT", store.lease(0));
    await rejectsWith("INVALID_ARGUMENT", store.lease(Number.NaN));
    await rejectsWith("INVALID_ARGUMENT", store.lease(Number.POSITIVE_INFINITY));
    const lease = await store.lease(1000);
    for (let i = 0; i < LEASE_KEYS_MAX; i += TXN_OPS_MAX) {
      await store.txn(
        [],
        Array.from({ length: TXN_OPS_MAX }, (_, j) => under(lease, `k${i + j}`)),
      );
    }
    await rejectsWith("TOO_LARGE", store.txn([], [under(lease, "one more")]));
    await store.txn([], [under(lease, "k0")]);
    await lease.revoke();
    assert.deepEqual(await contents(store), {});
  });
}

function under(lease: Lease, key: string): Op {
  return { type: "put", key, value: bytes(key), lease: lease.id };
}
