import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ChangeTrials, type TrialOptions } from "./try-changes.ts";

const CHANGE = { path: "a.ts", line: 1, before: "a < b", after: "a <= b" };

/** Returns trials in a folder with one source. A test's name states when it passes. */
function trials(t: TestContext, tests: readonly string[], options: Partial<TrialOptions> = {}) {
  const checkout = mkdtempSync(join(tmpdir(), "forage-trials-"));
  t.after(() => rmSync(checkout, { recursive: true }));
  const source = (): string => readFileSync(join(checkout, CHANGE.path), "utf8");
  writeFileSync(join(checkout, CHANGE.path), CHANGE.before);
  const ran: string[] = [];
  const made = new ChangeTrials({
    ...{ checkout, concurrency: 1, limitMs: 100, monotonicMs: () => 0 },
    testsOf: () => tests,
    passes: async (name) => {
      ran.push(`${name} ${source()}`);
      return name === "always" || (name === "without" && source() === CHANGE.before);
    },
    typesAreRight: async () => true,
    ...options,
  });
  return { ran, source, try: () => made.try(CHANGE) };
}

test("a change is noticed by a test that passes without it, and later tests are not run", async (t) => {
  const { ran, source, try: run } = trials(t, ["always", "without", "never"]);
  assert.deepEqual((await run()).verdict, { type: "noticed", by: "without" });
  assert.deepEqual(ran, ["always a <= b", "without a <= b", "without a < b"]);
  assert.equal(source(), CHANGE.before);
});

test("a test that also fails without the change is skipped, also for later changes", async (t) => {
  const { ran, try: run } = trials(t, ["always", "never"]);
  assert.deepEqual((await run()).verdict, { type: "survived", files: 1 });
  ran.length = 0;
  assert.deepEqual((await run()).verdict, { type: "survived", files: 1 });
  assert.deepEqual(ran, ["always a <= b"]);
});

test("wrong types are noticed in the changed source", async (t) => {
  const seen: string[] = [];
  const { source, try: run } = trials(t, ["always"], {
    typesAreRight: async () => {
      seen.push(source());
      return false;
    },
  });
  assert.deepEqual((await run()).verdict, { type: "noticed", by: "types" });
  assert.deepEqual(seen, [CHANGE.after]);
});

test("a change is unfinished if some of its tests could not start within the limit", async (t) => {
  let nowMs = 0;
  const { try: run } = trials(t, ["always", "second"], {
    monotonicMs: () => nowMs,
    passes: async () => {
      nowMs += 100;
      return true;
    },
  });
  assert.deepEqual(await run(), {
    ...{ change: CHANGE, durationMs: 100 },
    verdict: { type: "unfinished", files: 1 },
  });
});

test("the first failure ends the tests that run in parallel", async (t) => {
  let without = 0;
  const { try: run } = trials(t, ["without", "endless"], {
    concurrency: 2,
    passes: (name, signal) => {
      if (name === "without") return Promise.resolve(without++ > 0);
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(false)));
    },
  });
  assert.deepEqual((await run()).verdict, { type: "noticed", by: "without" });
});
