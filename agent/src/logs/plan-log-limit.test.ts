import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultLogLimit, planLogLimit, type StoredLog } from "./plan-log-limit.ts";

const aLog = (path: string, bytes: number, change: Partial<StoredLog> = {}): StoredLog => ({
  path,
  bytes,
  changedMs: 0,
  superseded: false,
  ...change,
});
const logs = [
  aLog("young", 100, { superseded: true, changedMs: 3 }),
  aLog("small", 10),
  aLog("old", 100, { superseded: true, changedMs: 1 }),
  aLog("empty", 0),
  aLog("large", 300),
];

for (const [limit, remove, shrink] of [
  [510, [], []],
  [509, ["old"], []],
  [450, ["old", "young"], []],
  [340, ["old", "young"], ["large"]],
  [1, ["old", "young"], ["large", "small"]],
] as const) {
  test(`with ${limit} of 510 bytes allowed, deletes ${remove.length} logs and shrinks ${shrink.length}`, () => {
    const plan = planLogLimit(logs, limit);
    assert.deepEqual(
      [plan.remove, plan.shrink].map((part) => part.map(({ path }) => path)),
      [remove, shrink],
    );
  });
}

test("the limit is a tenth of the disk, at most 5 GiB", () => {
  assert.equal(defaultLogLimit(1_000), 100);
  assert.equal(defaultLogLimit(2 ** 42), 5 * 2 ** 30);
});
