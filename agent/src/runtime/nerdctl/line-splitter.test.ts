import assert from "node:assert/strict";
import { test } from "node:test";
import { LineSplitter } from "./line-splitter.ts";

const split = (maxBytes: number, ...chunks: string[]) => {
  const splitter = new LineSplitter(maxBytes);
  return chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)));
};

test("lines, whatever the chunks", () => {
  assert.deepEqual(split(99, "a\nb", "c\n", "", "\nd", "\n", "rest"), ["a", "bc", "", "d"]);
});

test("characters cut in two come together", () => {
  const splitter = new LineSplitter(99);
  const bytes = Buffer.from("é\n");
  assert.deepEqual([...splitter.push(bytes.subarray(0, 1)), ...splitter.push(bytes.subarray(1))], ["é"]);
});

test("a line that is too long is dropped, the next one is not", () => {
  assert.deepEqual(split(4, "12345\nabcd\n", "12", "34", "5", "6\nx\n"), ["abcd", "x"]);
});
