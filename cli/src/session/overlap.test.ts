import assert from "node:assert/strict";
import { test } from "node:test";
import { Overlap } from "./overlap.ts";

const text = (part: Uint8Array) => Buffer.from(part).toString();

function shown(before: string, again: readonly string[]): string {
  const overlap = new Overlap();
  let all = text(overlap.push(Buffer.from(before)));
  overlap.restart();
  for (const part of again) all += text(overlap.push(Buffer.from(part)));
  return all + text(overlap.flush());
}

test("shows each line once, whichever part of the log the second stream repeats", () => {
  const log = Array.from({ length: 50 }, (_, i) => `line ${i}\n`).join("");
  const before = log.slice(0, 200);
  for (let size = 1; size <= log.length; size += 13) {
    const parts = Array.from({ length: Math.ceil(log.length / size) }, (_, i) =>
      log.slice(i * size, (i + 1) * size),
    );
    assert.equal(shown(before, parts), log, `parts of ${size}`);
  }
});

test("shows the whole log if it no longer contains the shown lines", () => {
  assert.equal(shown("old\n", ["new 1\n", "new 2\n"]), "old\nnew 1\nnew 2\n");
});

test("shows the whole second stream if no lines were shown before", () => {
  const overlap = new Overlap();
  overlap.restart();
  assert.equal(text(overlap.push(Buffer.from("a\n"))), "a\n");
});

test("limits the buffered text", () => {
  const overlap = new Overlap();
  overlap.push(Buffer.from("never again\n"));
  overlap.restart();
  let bytes = 0;
  for (let i = 0; i < 40; i++) bytes += overlap.push(Buffer.alloc(64 * 1024, "x")).length;
  assert.equal(bytes, 40 * 64 * 1024);
});
