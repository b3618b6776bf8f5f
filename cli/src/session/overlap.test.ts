import assert from "node:assert/strict";
import { test } from "node:test";
import { Overlap } from "./overlap.ts";

const text = (part: Uint8Array) => Buffer.from(part).toString();

function shown(before: string, again: readonly string[]): string {
  const overlap = new Overlap();
  let all = text(overlap.take(Buffer.from(before)));
  overlap.restart();
  for (const part of again) all += text(overlap.take(Buffer.from(part)));
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

test("a log that no longer has what was shown is shown whole", () => {
  assert.equal(shown("old\n", ["new 1\n", "new 2\n"]), "old\nnew 1\nnew 2\n");
});

test("without shown lines, the second stream is shown completely", () => {
  const overlap = new Overlap();
  overlap.restart();
  assert.equal(text(overlap.take(Buffer.from("a\n"))), "a\n");
});

test("the held-back text is bounded", () => {
  const overlap = new Overlap();
  overlap.take(Buffer.from("never again\n"));
  overlap.restart();
  let bytes = 0;
  for (let i = 0; i < 40; i++) bytes += overlap.take(Buffer.alloc(64 * 1024, "x")).length;
  assert.equal(bytes, 40 * 64 * 1024);
});
