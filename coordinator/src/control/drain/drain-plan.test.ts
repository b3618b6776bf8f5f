import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { planDrain } from "./drain-plan.ts";

/** Plans with four replicas, of which one may move at a time. */
function plan(moving: number) {
  const { workload } = aWorkloadEntry({ spec: { scaling: { replicas: 4 } } });
  return planDrain({
    drain: DrainRecord.fromPartial({}),
    nodeReady: true,
    pods: [aPod({ name: "a" }), aPod({ name: "b" })],
    workload: () => workload,
    moving: () => moving,
    waitsFor: () => "",
  });
}

test("a drain marks as many pods as the budget lets move at a time, and no more", () => {
  assert.deepEqual(
    plan(0).mark.map(({ record }) => record.name),
    ["a"],
  );
  assert.equal(plan(0).waiting.length, 2);
});

test("a drain marks no pod while the budget is used up by others", () => {
  assert.deepEqual(plan(1).mark, []);
});

test("a drain waits for jobs that run and not for those that have ended", () => {
  const { waiting } = planDrain({
    drain: DrainRecord.fromPartial({}),
    nodeReady: true,
    pods: [PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED].map((phase) =>
      aPod({ name: `job-${phase}`, kind: "job", status: { phase } }),
    ),
    workload: () => undefined,
    moving: () => 0,
    waitsFor: () => "",
  });
  assert.deepEqual(
    waiting.map(({ pod }) => pod.record.name),
    [`job-${PodPhase.RUNNING}`],
  );
});
