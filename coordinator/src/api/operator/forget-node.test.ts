import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { type ForgetOptions, forgetNode } from "./forget-node.ts";

test("fails with CONFLICT if pods were placed on the node in each of ten passes", async () => {
  const node = aNode({ name: "n1", ready: false });
  let rounds = 0;
  const options = {
    state: {
      node: () => node,
      podsOnNode: () => [aPod({ name: `p${rounds}`, node: "n1" })],
      objects: { list: () => [] },
      reached: async () => {},
    },
    store: { txn: async () => ({ succeeded: true, revision: 1 }) },
    log: { info: () => void rounds++ },
  } as unknown as ForgetOptions;
  await assert.rejects(forgetNode({ name: "n1", force: true }, options), { code: "CONFLICT" });
  assert.equal(rounds, 10);
});
