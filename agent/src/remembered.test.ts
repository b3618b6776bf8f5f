import assert from "node:assert/strict";
import { test } from "node:test";
import { remembered } from "./remembered.ts";

test("reads again only if the last result is too old", () => {
  let nowMs = 0;
  let reads = 0;
  const read = remembered(() => ++reads, 10_000, { monotonicMs: () => nowMs });
  assert.deepEqual([read(), read()], [1, 1]);
  nowMs = 9_999;
  assert.equal(read(), 1);
  nowMs = 10_000;
  assert.equal(read(), 2);
});
