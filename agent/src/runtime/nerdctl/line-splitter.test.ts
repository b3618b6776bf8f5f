import assert from "node:assert/strict";
import { test } from "node:test";
import { LineSplitter } from "./line-splitter.ts";

const split = (maxBytes: number, ...chunks: string[]) => {
  const splitter = new LineSplitter(maxBytes);
  return chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)));
};

test("splits lines independently of chunk boundaries", () => {
  assert.deepEqual(split(99, "a\nb", "c\n", "", "\nd", "\n", "rest"), ["a", "bc", "", "d"]);
});

test("joins characters that are cut in two", () => {
  const splitter = new LineSplitter(99);
  const bytes = Buffer.from("é\n");
  assert.deepEqual([...splitter.push(bytes.subarray(0, 1)), ...splitter.push(bytes.subarray(1))], ["é"]);
});

test("drops a line that is too long, but not the next one", () => {
  assert.deepEqual(split(4, "12345\nabcd\n", "12", "34", "5", "6\nx\n"), ["abcd", "x"]);
});
