import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeId } from "@forage/identity";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode } from "../../test/support/entries.ts";
import { aView } from "../../test/support/view.ts";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey } from "../model/keys.ts";
import { type EnrollOptions, renew } from "./enroll.ts";

const NODE = aNode({ name: "n1" });

test("renews a certificate although another request changes the node's record", async (t) => {
  const { renewed, state } = await renewal(t, { hasConnected: true });
  assert.equal((await renewed).certificatePem, "chain");
  assert.deepEqual(state.node("n1")?.record.serials, ["02", "01"]);
  assert.equal(state.node("n1")?.record.hasConnected, true, "the other change is kept");
});

const OTHER_CHANGES: readonly (readonly [string, Partial<NodeRecord>])[] = [
  ["a revocation", { revoked: true }],
  ["the join of another host under its name", { serials: ["0f"] }],
];
for (const [what, change] of OTHER_CHANGES) {
  test(`does not undo ${what} at the same time`, async (t) => {
    const { renewed, state } = await renewal(t, change);
    await assert.rejects(renewed, { code: "CONFLICT" });
    const { revoked, serials } = { ...NODE.record, ...change };
    assert.equal(state.node("n1")?.record.revoked, revoked);
    assert.deepEqual(state.node("n1")?.record.serials, serials);
  });
}

/** Begins a renewal, during which another request changes the node's record once. */
async function renewal(t: Parameters<typeof aView>[0], change: Partial<NodeRecord>) {
  const { store, state, clock } = await aView(t, { nodes: [NODE] });
  const issueNode = async () => {
    return {
      ...{ chainPem: "chain", serial: "02", pin: "pin", authorityPin: "authority" },
      ...{ notBeforeMs: 1_000, notAfterMs: 2_000 },
    };
  };
  let hasChanged = false;
  const contended = Object.create(store, {
    txn: {
      value: async (...transaction: Parameters<typeof store.txn>) => {
        if (!hasChanged) {
          hasChanged = true;
          const value = encodeRecord(NodeRecord, { ...NODE.record, ...change });
          await store.txn([], [{ type: "put", key: nodeKey("n1"), value }]);
        }
        return store.txn(...transaction);
      },
    },
  });
  const options = {
    ...{ store: contended, state, clock, log: pino({ level: "silent" }), history: { refusal: undefined } },
    authority: { issueNode, certPem: "root" },
  } as unknown as EnrollOptions;
  const caller = { type: "node", nodeId: nodeId("n1"), serial: "01" } as const;
  const context = { method: "", caller, peer: "", signal: new AbortController().signal };
  const renewed = renew({ csr: new Uint8Array() } as Parameters<typeof renew>[0], context, options);
  return { renewed, state };
}
