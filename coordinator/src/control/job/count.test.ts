import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { JobStatus } from "@forage/proto/forage/store/v1/store";
import { aJobEntry, aPod } from "../../../test/support/entries.ts";
import { jobOf } from "../../model/job.ts";
import { countPods } from "./count.ts";

const job = jobOf(aJobEntry({ spec: { jobConfig: { completions: 3 } } }).record);
const ended = (name: string, phase: PodPhase, observedAtMs: number) =>
  aPod({ name, kind: "job", status: { phase }, observedAtMs, job: { run: job?.run ?? "", counted: "" } });

test("a success resets the number of consecutive failures", () => {
  assert.ok(job);
  const before = JobStatus.fromPartial({ run: job.run, failed: 4, failuresInARow: 4 });
  const { status } = countPods(job, before, [ended("a", PodPhase.SUCCEEDED, 2)]);
  assert.deepEqual([status.succeeded, status.failed, status.failuresInARow], [1, 4, 0]);
});

test("counts pods in the order in which they ended", () => {
  assert.ok(job);
  const pods = [ended("late", PodPhase.SUCCEEDED, 2), ended("early", PodPhase.FAILED, 1)];
  const { status, counted } = countPods(job, JobStatus.fromPartial({ run: job.run }), pods);
  assert.deepEqual(
    counted.map(({ pod, as }) => `${pod.record.name} ${as}`),
    ["early failed", "late succeeded"],
  );
  assert.equal(status.failuresInARow, 0);
});

test("a pod that succeeds after the last completion is surplus and doesn't reset consecutive failures", () => {
  assert.ok(job);
  const before = JobStatus.fromPartial({ run: job.run, succeeded: 3, failuresInARow: 1 });
  const { status, counted } = countPods(job, before, [ended("a", PodPhase.SUCCEEDED, 1)]);
  assert.deepEqual([status.succeeded, status.failuresInARow, counted[0]?.as], [3, 1, "surplus"]);
});
