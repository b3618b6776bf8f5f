import assert from "node:assert/strict";
import { test } from "node:test";
import { AutoscalingStatus } from "@forage/proto/forage/operator/v1/operator";
import { plain } from "../output/paint.ts";
import { describeAutoscaling } from "./autoscaling.ts";

test("shows a decision with its inputs", () => {
  const status = AutoscalingStatus.fromPartial({
    minReplicas: 1,
    maxReplicas: 5,
    currentReplicas: 2,
    desiredReplicas: 4,
    reason: "2 → 4: cpu is at 100% of requests, target 50%",
    lastScaledAt: { seconds: 1_000n },
    lastScaleReason: "1 → 2: cpu is at 90% of requests, target 50%",
    conditions: [
      { type: "ScalingActive", status: true, reason: "MetricsMissing", message: "rps: nothing was pushed" },
    ],
    metrics: [
      { name: "cpu", targetType: "Utilization", target: "50%", value: "100%", replicas: 4 },
      { name: "rps", targetType: "AverageValue", target: "10", message: "nothing was pushed" },
    ],
  });
  const text = describeAutoscaling(status, 1_060_000, plain);
  for (const expected of [
    /^Replicas: +2, from 1 to 5$/m,
    /^Desired: +4$/m,
    /^Decision: +2 → 4: cpu is at 100% of requests, target 50%$/m,
    /1m ago\)\n +1 → 2: cpu is at 90%/,
    /^Conditions: +ScalingActive yes \(MetricsMissing\): rps: nothing was pushed$/m,
    /^cpu +Utilization +100% +50% +4 +-$/m,
    /^rps +AverageValue +\? +10 +- +nothing was pushed$/m,
  ])
    assert.match(text, expected);
});

test("omits an unchanged size, and shows nothing without an autoscaler", () => {
  const status = AutoscalingStatus.fromPartial({ currentReplicas: 2, desiredReplicas: 2 });
  assert.doesNotMatch(describeAutoscaling(status, 0, plain), /Desired/);
  assert.match(describeAutoscaling(status, 0, plain), /Last change: +never/);
  assert.equal(describeAutoscaling(undefined, 0, plain), "");
});
