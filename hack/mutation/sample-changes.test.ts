import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleChanges } from "./sample-changes.ts";

const sources = new Map([
  ["a.ts", Array.from({ length: 20 }, (_, index) => `if (a${index} < b) first();`).join("\n")],
  ["b.ts", "const nothing = 1;"],
  // Without this line the statement is empty.
  ["c.ts", "if (a)\nfirst();"],
]);

test("chooses each line at most once, and the same changes for the same seed", () => {
  const chosen = sampleChanges(sources, { seed: 1, count: 10 });
  assert.equal(new Set(chosen.map(({ line }) => line)).size, 10);
  assert.deepEqual(chosen, sampleChanges(sources, { seed: 1, count: 10 }));
  assert.notDeepEqual(chosen, sampleChanges(sources, { seed: 2, count: 10 }));
});

test("chooses only changes whose source can be parsed, and no more than exist", () => {
  const chosen = sampleChanges(sources, { seed: 1, count: 100 });
  assert.equal(chosen.length, 20);
  assert.ok(chosen.every(({ path }) => path === "a.ts"));
});
