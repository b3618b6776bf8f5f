import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AuditEntry,
  ChainCheck,
  type ChainHead,
  EMPTY_CHAIN,
  openEntry,
  sealEntry,
} from "./audit-chain.ts";

test("a sealed entry can be opened", () => {
  const [line = ""] = chain(1);
  const entry = openEntry(line);
  assert.equal(entry?.method, "/a/M1");
  assert.deepEqual([entry?.sequence, entry?.previous], [1, EMPTY_CHAIN.hash]);
});

test("accepts a chain from its start or from any later entry", () => {
  const lines = chain(5);
  for (const from of [0, 3]) {
    const check = new ChainCheck();
    for (const line of lines.slice(from)) assert.equal(problemOf(check.check(line)), undefined);
    assert.deepEqual([check.first, check.head?.sequence, check.count], [from + 1, 5, 5 - from]);
  }
});

for (const [name, change, problem] of [
  [
    "a changed entry",
    (lines: string[]) => [...lines.slice(0, 2), (lines[2] ?? "").replace("/a/M3", "/a/M9")],
    /after entry 2 was changed/,
  ],
  [
    "a missing entry",
    (lines: string[]) => [...lines.slice(0, 2), ...lines.slice(3)],
    /missing after entry 2: the next one is 4/,
  ],
  [
    "a missing first entry without a record of its removal",
    (lines: string[]) => [lines[0] ?? "", ...lines.slice(2)],
    /missing after entry 1/,
  ],
  [
    "an entry that was sealed again",
    (lines: string[]) => [...lines.slice(0, 2), resealed(lines), ...lines.slice(3)],
    /entry 4 does not continue the chain/,
  ],
  [
    "a chain that begins with another entry",
    (lines: string[]) => [
      sealEntry({ event: "call" }, "now", { sequence: 0, hash: "1".repeat(64) }).line,
      ...lines,
    ],
    /entry 1 does not continue/,
  ],
  ["a line that is no entry", (lines: string[]) => [...lines, "{}"], /after entry 5 was changed/],
] as const) {
  test(`detects ${name}`, () => {
    const check = new ChainCheck();
    const problems = change(chain(5)).flatMap((line) => problemOf(check.check(line)) ?? []);
    assert.match(problems[0] ?? "", problem);
  });
}

function problemOf(result: ReturnType<ChainCheck["check"]>): string | undefined {
  return "problem" in result ? result.problem : undefined;
}

function chain(count: number): string[] {
  let head: ChainHead = EMPTY_CHAIN;
  return Array.from({ length: count }, (_, index) => {
    const sealed = sealEntry({ event: "call", method: `/a/M${index + 1}` }, "2030-01-01T00:00:00.000Z", head);
    head = sealed.head;
    return sealed.line;
  });
}

/** Returns the third entry with another method and a matching hash. */
function resealed(lines: readonly string[]): string {
  const second = openEntry(lines[1] ?? "") as AuditEntry;
  return sealEntry({ event: "call", method: "/a/Other" }, "now", second).line;
}
