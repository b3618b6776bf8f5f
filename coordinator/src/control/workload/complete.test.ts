import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, ContainerServiceStatus } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { isComplete, staysInPlace } from "./complete.ts";
import { nextEvaluationMs, planWorkload } from "./plan.ts";
import { addDrainStops } from "./retire.ts";
import type { WorkloadInput } from "./workload-input.ts";

const NOW_MS = 1_000_000;
const SEEDS = 3_000;

test("plans no step for a complete workload when the readiness of its pods changes", () => {
  let complete = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = randomOf(seed);
    const input = anyInput(random);
    if (planOf(input).length > 0 || nextEvaluationMs(input) !== undefined || !isComplete(input)) continue;
    complete++;
    const pods = input.pods.map((pod) => changed(random, pod));
    assert.deepEqual(planOf({ ...input, pods, nowMs: NOW_MS + random.below(100_000) }), [], `seed ${seed}`);
  }
  assert.ok(complete > SEEDS / 50, `${complete} were complete`);
});

test("a pod stays in place while only its status changes and it has not ended", () => {
  const before = aPod({ status: { phase: PodPhase.RUNNING, ready: true } });
  const isInPlace = (after: PodEntry | undefined) => staysInPlace({ type: "pod", before, after });
  const of = (phase: PodPhase): PodEntry => ({ ...before, status: aPod({ status: { phase } }).status });
  assert.deepEqual(
    [PodPhase.RUNNING, PodPhase.PENDING].map((phase) => isInPlace(of(phase))),
    [true, true],
  );
  for (const phase of [PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.STOPPING, PodPhase.REMOVED])
    assert.equal(isInPlace(of(phase)), false);
  assert.equal(isInPlace({ ...before, status: undefined }), true);
  assert.equal(isInPlace({ ...before, record: { ...before.record } }), false);
  assert.equal(isInPlace(undefined), false);
  assert.equal(staysInPlace({ type: "pod", before: undefined, after: before }), false);
});

function planOf(input: WorkloadInput) {
  return addDrainStops(planWorkload(input), input);
}

function anyInput(random: Random): WorkloadInput {
  const replicas = random.below(4);
  const updateStrategy = { type: random.below(2) === 0 ? "Recreate" : "RollingUpdate" };
  const resource = aWorkloadEntry({
    spec: { scaling: { replicas }, updateStrategy },
    deleting: random.below(10) === 0,
  });
  const hash = resource.applied?.templateHash ?? "";
  const count = random.below(3) === 0 ? random.below(5) : replicas;
  const pods = Array.from({ length: count }, (_, index) => anyPod(random, `p${index}`, hash));
  const state = random.below(4) === 0 ? AttemptState.PROGRESSING : AttemptState.SUCCEEDED;
  const attempt = { templateHash: hash, revision: 1, state };
  return {
    resource,
    pods,
    held: random.below(10) === 0,
    nodeExists: (name) => name !== "gone",
    nodeReady: (name) => name === "n1",
    imagesOn: () => ({ type: "present" }),
    nowMs: NOW_MS,
    upSinceMs: 0,
    status: ContainerServiceStatus.fromPartial({ attempt }),
    revisions: [],
    unschedulable: () => undefined,
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 500 },
    pickVictims: (candidates, victims) => candidates.slice(0, victims),
  };
}

function anyPod(random: Random, name: string, current: string): PodEntry {
  const isRare = (): boolean => random.below(12) === 0;
  const pod = aPod({
    name,
    hash: isRare() ? "old" : current,
    node: isRare() ? "" : isRare() ? "gone" : random.below(2) === 0 ? "away" : "n1",
    stopping: isRare(),
    observedAtMs: NOW_MS - random.below(2_000),
    status: { phase: isRare() ? PodPhase.FAILED : PodPhase.RUNNING, ready: random.below(2) === 0 },
  });
  return isRare() ? { ...pod, record: { ...pod.record, drainingSince: toTimestamp(1) } } : pod;
}

/** Returns the pod after changes of its status that keep it in place. */
function changed(random: Random, before: PodEntry): PodEntry {
  const phase = random.below(2) === 0 ? PodPhase.FAILED : PodPhase.RUNNING;
  const { status } = aPod({ status: { phase, ready: random.below(2) === 0, reason: "Evicted" } });
  const observedAtMs = NOW_MS - random.below(20_000);
  const after: PodEntry = { ...before, status: random.below(5) === 0 ? undefined : status, observedAtMs };
  return staysInPlace({ type: "pod", before, after }) ? after : before;
}
