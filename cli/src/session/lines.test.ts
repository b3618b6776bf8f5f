import assert from "node:assert/strict";
import { test } from "node:test";
import { Lines, prefixLines } from "./lines.ts";

const bytes = (text: string) => Buffer.from(text);
const text = (part: Uint8Array) => Buffer.from(part).toString();

test("returns whole lines from chunks of any size", () => {
  const lines = new Lines();
  assert.deepEqual(
    ["a", "b\nc", "\n\nd\ne"].map((part) => text(lines.push(bytes(part)))),
    ["", "ab\n", "c\n\nd\n"],
  );
  assert.equal(text(lines.end()), "e\n");
  assert.equal(text(lines.end()), "");
});

test("joins characters that were split between chunks", () => {
  const lines = new Lines();
  const whole = bytes("é\n");
  assert.equal(text(lines.push(whole.subarray(0, 1))) + text(lines.push(whole.subarray(1))), "é\n");
});

test("passes on a line without end in parts", () => {
  const lines = new Lines();
  assert.equal(lines.push(Buffer.alloc(60_000, "x")).length, 0);
  assert.equal(lines.push(Buffer.alloc(60_000, "x")).length, 120_001);
  assert.equal(lines.end().length, 0);
});

test("prefixes every line, including empty ones", () => {
  assert.equal(text(prefixLines(bytes("a\n\nb\n"), "p | ")), "p | a\np | \np | b\n");
  assert.equal(text(prefixLines(bytes(""), "p | ")), "");
});
