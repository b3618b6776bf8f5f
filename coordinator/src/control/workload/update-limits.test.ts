import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { UpdateStrategy } from "@forage/proto/forest/v1/forage";
import { canarySize, countedSurge, updateLimits } from "./update-limits.ts";

test("ignores an invalid stored surge in quotas", () => {
  const strategy = UpdateStrategy.fromPartial({ type: "RollingUpdate", rollingUpdate: { maxSurge: "many" } });
  assert.equal(countedSurge(strategy, 4), 0);
});

describe("updateLimits of a rolling update", () => {
  for (const [maxSurge, maxUnavailable, replicas, surge, unavailable] of [
    ["", "", 1, 1, 0],
    ["", "", 3, 1, 0],
    ["", "", 4, 1, 1],
    ["", "", 5, 2, 1],
    ["", "", 10, 3, 2],
    ["25%", "25%", 0, 0, 1],
    ["1", "0", 3, 1, 0],
    ["0", "1", 3, 0, 1],
    ["0", "", 1, 0, 1],
    ["0", "", 3, 0, 1],
    ["0", "", 8, 0, 2],
    ["0", "10%", 5, 0, 1],
    ["0%", "30%", 10, 0, 3],
    ["29%", "29%", 100, 29, 29],
    ["7%", "7%", 100, 7, 7],
    ["1%", "1%", 1, 1, 0],
    ["300%", "0", 2, 6, 0],
    ["5", "100%", 4, 5, 4],
    ["0", "7", 3, 0, 3],
    ["33%", "33%", 3, 1, 0],
    ["34%", "34%", 3, 2, 1],
    ["007", "0", 2, 7, 0],
  ] as const) {
    test(`surge "${maxSurge}", unavailable "${maxUnavailable}" of ${replicas}`, () => {
      const strategy = UpdateStrategy.fromPartial({ rollingUpdate: { maxSurge, maxUnavailable } });
      assert.deepEqual(updateLimits(strategy, replicas), { type: "RollingUpdate", surge, unavailable });
    });
  }
  test("uses the defaults without a strategy", () => {
    assert.deepEqual(updateLimits(undefined, 4), { type: "RollingUpdate", surge: 1, unavailable: 1 });
    assert.deepEqual(updateLimits(UpdateStrategy.fromPartial({ type: "RollingUpdate" }), 4), {
      type: "RollingUpdate",
      surge: 1,
      unavailable: 1,
    });
  });
  test("Recreate has no limits", () => {
    assert.deepEqual(updateLimits(UpdateStrategy.fromPartial({ type: "Recreate" }), 4), { type: "Recreate" });
  });
});

describe("canarySize", () => {
  for (const [canary, replicas, expected] of [
    ["1", 5, 1],
    ["3", 2, 2],
    ["10%", 5, 1],
    ["20%", 11, 3],
    ["100%", 4, 4],
    ["1", 0, 0],
  ] as const) {
    test(`${canary} of ${replicas}`, () => assert.equal(canarySize(canary, replicas), expected));
  }
});
