import assert from "node:assert/strict";
import { test } from "node:test";
import { aView } from "../../test/support/view.ts";
import type { StoreWrite } from "../model/batches.ts";
import type { Store } from "../store/index.ts";
import { writeBatches } from "./write.ts";

test("writes the other transactions when the store rejects one, and throws its error", async (t) => {
  const { store, state } = await aView(t);
  const rejecting: Store = new Proxy(store, {
    get: (_, name) =>
      name === "txn"
        ? (...[compares, ops]: Parameters<Store["txn"]>) =>
            ops.some((op) => op.type === "put" && op.key === "a/0")
              ? Promise.reject(new Error("rejected"))
              : store.txn(compares, ops)
        : Reflect.get(store, name, store),
  });
  const writes = ["a", "b"].map((name) => manyOps(name));
  await assert.rejects(writeBatches(writes, { store: rejecting, state }), /rejected/);
  assert.equal(await store.get("a/1"), undefined);
  assert.ok((await store.get("b/1")) !== undefined);
});

/** Returns a write with so many operations that it fills a transaction. */
function manyOps(name: string): StoreWrite {
  const ops = Array.from({ length: 100 }, (_, index) => ({
    ...{ type: "put" as const, key: `${name}/${index}`, value: new Uint8Array() },
  }));
  return { compares: [], ops };
}
