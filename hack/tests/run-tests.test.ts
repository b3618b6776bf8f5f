import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeRuns, type RunResult, renderSlowest } from "./run-tests.ts";

test("the closing counts of several runs come once, added up, after everything else", async () => {
  const result: RunResult = { failed: false, files: [] };
  const merged = mergeRuns([aRun("a", 2), aRun("b", 3)], result);

  const events = (await drain(merged)).map(({ type, data }) => `${type} ${data.message ?? data.name}`);

  assert.deepEqual(events, [
    "test:pass a",
    "test:diagnostic a says tests 7",
    "test:pass b",
    "test:diagnostic b says tests 7",
    "test:summary undefined",
    "test:diagnostic tests 5",
    "test:diagnostic duration_ms 3.5",
  ]);
  assert.equal(result.failed, false);
});

test("a failure in any run fails the whole, one that is still to do doesn't", async () => {
  const failedAfter = async (data: Record<string, unknown>): Promise<boolean> => {
    const result: RunResult = { failed: false, files: [] };
    const failure = (async function* () {
      yield { type: "test:fail", data: { nesting: 0, name: "f", ...data } };
    })();
    await drain(mergeRuns([failure, aRun("b", 1)], result));
    return result.failed;
  };

  assert.equal(await failedAfter({}), true);
  assert.equal(await failedAfter({ todo: true }), false);
});

test("the slowest files are named with what they took, and the total", async () => {
  const result: RunResult = { failed: false, files: [] };
  const events = (async function* () {
    for (let i = 1; i <= 12; i++)
      yield { type: "test:summary", data: { file: `/root/a/${i}.test.ts`, duration_ms: i * 1000 } };
  })();
  await drain(mergeRuns([events], result));

  const lines = renderSlowest("/root", result, 65_432).split("\n");
  assert.equal(lines.length, 13);
  assert.equal(lines[1], "   12.0 s  a/12.test.ts");
  assert.equal(lines[10], "    3.0 s  a/3.test.ts");
  assert.equal(lines[11], "   65.4 s  all 12 files");
});

async function* aRun(name: string, tests: number) {
  yield { type: "test:pass", data: { nesting: 0, name } };
  yield { type: "test:diagnostic", data: { nesting: 0, file: "f.ts", message: `${name} says tests 7` } };
  yield { type: "test:diagnostic", data: { nesting: 0, message: `tests ${tests}` } };
  yield { type: "test:diagnostic", data: { nesting: 0, message: "duration_ms 1.75" } };
  yield { type: "test:summary", data: { success: true } };
}

async function drain<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
