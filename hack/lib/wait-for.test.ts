import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { restAfter, waitFor } from "./wait-for.ts";

describe("the rest between checks", () => {
  for (const [what, checkMs, waitedMs, expectedMs] of [
    ["a check without cost keeps its interval, however long the wait", 0, 60_000, 25],
    ["a first check that starts a program", 20, 20, 80],
    ["the same check later, for an eighth of the time waited", 20, 1_000, 125],
    ["the same check much later", 5, 60_000, 150],
    ["a slower check much later", 50, 60_000, 250],
    ["a check that takes longer than the limit of the growth", 100, 60_000, 400],
  ] as const)
    test(what, () => assert.equal(restAfter(checkMs, waitedMs, 25), expectedMs));

  test("it is at least the interval", () => assert.equal(restAfter(20, 1_000, 500), 500));
});

describe("waiting", () => {
  test("returns the first result that is neither undefined nor false", async () => {
    const results = [undefined, false, 0];
    const found = await waitFor(() => results.shift(), {
      what: "there is a number",
      limitMs: 10_000,
      everyMs: 1,
    });
    assert.equal(found, 0);
  });

  test("says what it waited for, and the explanation", async () => {
    const waiting = waitFor(() => false, {
      what: "it serves",
      limitMs: 0,
      explain: () => "the end of the log",
    });
    await assert.rejects(waiting, /waited 0 ms in vain until it serves\nthe end of the log/);
  });
});
