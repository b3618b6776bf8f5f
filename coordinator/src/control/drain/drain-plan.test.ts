import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { DrainRecord } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { planDrain } from "./drain-plan.ts";

/** Plans a drain for a workload with four replicas and a budget of one, of whose pods this many are moving. */
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

test("marks as many pods as the disruption budget allows", () => {
  assert.deepEqual(
    plan(0).mark.map(({ record }) => record.name),
    ["a"],
  );
  assert.equal(plan(0).waiting.length, 2);
});

test("marks no pod while other pods use up the disruption budget", () => {
  assert.deepEqual(plan(1).mark, []);
});

test("waits for pods of jobs that run, but not for ended ones", () => {
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
