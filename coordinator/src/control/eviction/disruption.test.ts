import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { disruptionOf, EvictionPace } from "./disruption.ts";

describe("disruptionOf: lost nodes of all nodes", () => {
  for (const [nodes, lost, expected] of [
    [0, 0, "none"],
    [1, 0, "none"],
    [1, 1, "full"],
    [2, 1, "none"],
    [2, 2, "full"],
    [3, 1, "none"],
    [3, 2, "partial"],
    [4, 2, "none"],
    [4, 3, "partial"],
    [20, 11, "none"],
    [20, 12, "partial"],
    [100, 99, "partial"],
    [100, 100, "full"],
  ] as const)
    test(`${lost} of ${nodes}: ${expected}`, () => assert.equal(disruptionOf({ nodes, lost }), expected));
});

test("small fleets: replaces the pods of two nodes at once, then of one node every 10 s", () => {
  const pace = new EvictionPace();
  const fleet = { nodes: 10, lost: 4 };
  assert.deepEqual([pace.acquire(fleet, 0), pace.acquire(fleet, 0)], [0, 0]);
  assert.equal(pace.acquire(fleet, 0), 10_000);
  assert.equal(pace.acquire(fleet, 4_000), 6_000);
  assert.equal(pace.acquire(fleet, 10_000), 0);
  assert.equal(pace.acquire(fleet, 10_000), 10_000);
  assert.deepEqual(
    [pace.acquire(fleet, 100_000), pace.acquire(fleet, 100_000)],
    [0, 0],
    "unused ones are kept",
  );
  assert.ok(pace.acquire(fleet, 100_000) > 0, "but no more than the bucket holds");
});

test("large fleets: replaces the pods of a fifth of the nodes at once, then of 1 % of the nodes each second", () => {
  const pace = new EvictionPace();
  const fleet = { nodes: 1_000, lost: 300 };
  let taken = 0;
  while (pace.acquire(fleet, 0) === 0) taken++;
  assert.equal(taken, 200);
  for (let ms = 0; ms <= 1_000; ms += 50) if (pace.acquire(fleet, ms) === 0) taken++;
  assert.equal(taken, 210);
});

test("replaces no pods while most nodes are lost, few in large fleets, and keeps the saved tokens for afterwards", () => {
  const small = new EvictionPace();
  assert.equal(small.acquire({ nodes: 10, lost: 6 }, 0), Number.POSITIVE_INFINITY);
  assert.equal(small.acquire({ nodes: 10, lost: 10 }, 0), Number.POSITIVE_INFINITY);
  assert.equal(small.acquire({ nodes: 10, lost: 5 }, 1_000), 0, "as soon as enough are back");
  const large = new EvictionPace();
  assert.equal(large.acquire({ nodes: 100, lost: 60 }, 0), 100_000, "not one before the loss has lasted");
  assert.equal(large.acquire({ nodes: 100, lost: 100 }, 0), Number.POSITIVE_INFINITY);
  assert.equal(large.acquire({ nodes: 100, lost: 50 }, 0), 0);
});
