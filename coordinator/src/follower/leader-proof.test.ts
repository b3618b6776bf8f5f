import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaderProof } from "./leader-proof.ts";

test("the store is proven from the first answer of a leader that decides, and stays so", () => {
  const proof = new LeaderProof();
  const seen = [proof.holds];
  for (const decides of [false, true, false]) {
    proof.observe({ decides });
    seen.push(proof.holds);
  }
  assert.deepEqual(seen, [false, false, true, true]);
});
