import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, ContainerServiceStatus } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { budgetOf } from "./budget.ts";
import { planWorkload } from "./plan.ts";
import { addDrainStops } from "./retire.ts";
import type { WorkloadInput } from "./workload-input.ts";

const NOW_MS = 1_000_000;
const STOP_A = "stop a: its node n1 is drained";
const READY = { ready: true, phase: PodPhase.RUNNING };

describe("budgetOf", () => {
  const rolling = (maxUnavailable: string, maxSurge = "") => {
    return { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable, maxSurge } } };
  };
  for (const [what, replicas, spec, annotation, needed, moving] of [
    ["one replica, by default", 1, {}, undefined, 1, 1],
    ["four replicas, by default", 4, {}, undefined, 3, 1],
    ["eight replicas, by default", 8, {}, undefined, 6, 2],
    ["by max_unavailable", 10, rolling("50%"), undefined, 5, 5],
    ["no unavailable pods", 10, rolling("0", "2"), undefined, 10, 2],
    ["Recreate", 3, { updateStrategy: { type: "Recreate" } }, undefined, 0, 3],
    ["Recreate with a budget", 3, { updateStrategy: { type: "Recreate" } }, "1", 2, 1],
    ["a budget by annotation", 10, rolling("50%"), "1", 9, 3],
    ["a percentage is rounded up", 3, {}, "10%", 2, 1],
    ["a budget of 0", 3, {}, "0", 3, 1],
    ["a budget beyond the replicas", 2, {}, "5", 0, 2],
    ["no replicas", 0, {}, undefined, 0, 1],
  ] as const)
    test(what, () => {
      const annotations = annotation === undefined ? {} : { "forage.dev/disruption-budget": annotation };
      const entry = aWorkloadEntry({ spec: { ...spec, scaling: { replicas }, podConfig: { annotations } } });
      assert.ok(entry.workload);
      assert.deepEqual(budgetOf(entry.workload), { needed, moving });
    });
});

describe("stopping pods of drained nodes", () => {
  for (const [what, replicas, pods, steps] of [
    ["creates a replacement of the only replica first", 1, [leaving("a")], ["create 1"]],
    ["waits until the replacement is ready", 1, [leaving("a"), pod("b", { status: { ready: false } })], []],
    [
      "stops the pod once the replacement is ready",
      1,
      [leaving("a"), pod("b")],
      ["stop a: its node n1 is drained"],
    ],
    ["stops one of four pods at once", 4, [leaving("a"), pod("b"), pod("c"), pod("d")], ["create 1", STOP_A]],
    ["stops none of four pods while one is missing", 4, [leaving("a"), pod("b"), pod("c")], ["create 2"]],
    [
      "stops no more pods than the budget allows",
      4,
      [leaving("a"), leaving("b"), pod("c"), pod("d")],
      ["create 2", STOP_A],
    ],
    ["stops an unready pod at once", 1, [leaving("a", { status: { ready: false } })], ["create 1", STOP_A]],
    [
      "stops a pod on a lost node at once",
      1,
      [leaving("a", { node: "lost" })],
      ["create 1", "stop a: its node lost is drained"],
    ],
    ["creates no replacement if no replicas are desired", 0, [leaving("a")], [STOP_A]],
    ["ignores a stopping pod", 1, [leaving("a", { stopping: true }), pod("b")], []],
  ] as const)
    test(what, () => assert.deepEqual(plan(replicas, pods), steps));
});

function plan(replicas: number, pods: readonly PodEntry[]): string[] {
  const resource = aWorkloadEntry({ spec: { scaling: { replicas } } });
  const hash = resource.workload?.templateHash ?? "";
  const all = pods.map((it) => ({ ...it, record: { ...it.record, templateHash: hash } }));
  const input: WorkloadInput = {
    resource,
    pods: all,
    status: ContainerServiceStatus.fromPartial({
      attempt: { templateHash: hash, revision: 1, state: AttemptState.SUCCEEDED },
    }),
    revisions: [],
    nodeExists: () => true,
    imagesOn: () => ({ type: "present" }),
    unschedulable: () => undefined,
    nowMs: NOW_MS,
    upSinceMs: 0,
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
    nodeReady: (node) => node !== "lost",
    pickVictims: (some, count) => some.slice(0, count),
  };
  return addDrainStops(planWorkload(input), input).flatMap((step) => {
    if (step.type === "create-pods") return [`create ${step.count}`];
    return step.type === "stop-pod" ? [`stop ${step.pod.record.name}: ${step.why}`] : [];
  });
}

function leaving(name: string, fields: PodFields = {}): PodEntry {
  const made = pod(name, fields);
  const record = { ...made.record, drainingSince: toTimestamp(1), drainCause: "drain" };
  return { ...made, record };
}

function pod(name: string, fields: PodFields = {}): PodEntry {
  return aPod({ name, status: READY, observedAtMs: 0, ...fields });
}
