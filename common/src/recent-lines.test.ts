import assert from "node:assert/strict";
import { test } from "node:test";
import { RecentLines } from "./recent-lines.ts";

test("keeps the newest lines within the limit", () => {
  const lines = new RecentLines(30);
  for (let n = 0; n < 100; n++) lines.add(`line ${String(n).padStart(2, "0")}\n`);
  assert.equal(lines.text(), "line 97\nline 98\nline 99\n");
});

test("truncates a long line and keeps the others", () => {
  const lines = new RecentLines(40_000);
  lines.add("before\n");
  lines.add(`${"x".repeat(1_000_000)}\n`);
  lines.add("after\n");
  const text = lines.text();
  assert.ok(text.startsWith("before\n") && text.endsWith("…\nafter\n"));
  assert.ok(text.length < 17_000, String(text.length));
});
