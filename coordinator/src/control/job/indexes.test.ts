import assert from "node:assert/strict";
import { test } from "node:test";
import { formatIndexes, parseIndexes } from "./indexes.ts";

for (const [indexes, text] of [
  [[], ""],
  [[0], "0"],
  [[3, 1, 2, 0], "0-3"],
  [[0, 2, 4], "0,2,4"],
  [[9, 10, 11, 1, 5], "1,5,9-11"],
] as const) {
  test(`formats and parses "${text}"`, () => {
    assert.equal(formatIndexes(indexes), text);
    assert.deepEqual(
      [...parseIndexes(text)],
      [...indexes].sort((a, b) => a - b),
    );
  });
}
