import assert from "node:assert/strict";
import { test } from "node:test";
import { canBeParsed, findChanges, makeChange } from "./find-changes.ts";

/** Returns the possible replacements of a line. */
function changesOf(line: string): string[] {
  return findChanges(`{\n${line}\n}`).map(({ after }) => after);
}

test("changes a limit by one and reverses comparisons", () => {
  assert.deepEqual(changesOf("return count < limit;"), ["return count <= limit;"]);
  assert.deepEqual(changesOf("return count >= limit;"), ["return count > limit;"]);
  assert.deepEqual(changesOf("return a === b && c;"), ["return a !== b && c;", "return a === b || c;"]);
});

test("removes steps and guards that fill their line", () => {
  for (const step of [
    "  this.#queue.retry(uid);",
    "  await store.close();",
    "  if (closed) return;",
    "  this.#count += 1;",
  ])
    assert.ok(changesOf(step).includes(""), step);
});

test("never enters a block whose condition has one alternative", () => {
  assert.deepEqual(changesOf("if (isOver(pod)) {"), ["if (false && isOver(pod)) {"]);
  assert.deepEqual(changesOf("if (a || b) {"), ["if (a && b) {"]);
});

test("changes neither texts nor lines that only report, declare or keep a parameter", () => {
  for (const line of [
    'const text = "a < b && c";',
    "// a < b && c",
    "const pattern = /a < b && c/;",
    'log.warn({ isLate: a < b }, "late");',
    'throw new Error("a" + b);',
    "readonly isLate: true;",
    "this.#clock = options.clock;",
    'import { a } from "./a.ts";',
  ])
    assert.deepEqual(changesOf(line), [], line);
});

test("applies one change and rejects a change of another source", () => {
  const [change] = findChanges("first();\nif (a) return;\n");
  assert.ok(change);
  assert.deepEqual(change, { line: 1, before: "first();", after: "" });
  assert.equal(makeChange("first();\nif (a) return;\n", change), "\nif (a) return;\n");
  assert.throws(() => makeChange("other();\n", change), /line 1 isn't "first\(\);"/);
});

test("a source with types can be parsed, and one with a missing line can't", () => {
  assert.ok(canBeParsed("const a: number = 1;"));
  assert.ok(!canBeParsed("if (a)"));
});
