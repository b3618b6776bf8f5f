import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { aPod, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { planWorkload, type WorkloadInput, type WorkloadStep } from "./plan.ts";

const nowMs = 1_000_000;
const ready = { ready: true, phase: PodPhase.RUNNING };
const v1 = aWorkloadEntry();
const hash = v1.workload?.templateHash ?? "";

describe("what is done for a workload", () => {
  for (const [what, resource, pods, steps] of [
    ["nothing runs", v1, [], ["create 2: too few replicas"]],
    ["one is missing", v1, [pod("a", { status: ready })], ["create 1: too few replicas"]],
    ["all are there", v1, [pod("a"), pod("b")], []],
    ["one is stopping", v1, [pod("a"), pod("b", { stopping: true })], ["create 1: too few replicas"]],
    [
      "one too many, of which one isn't placed",
      v1,
      [pod("a", { status: ready }), pod("b", { node: "" }), pod("c", { status: ready })],
      ["stop b: too many replicas"],
    ],
    [
      "one too many, one isn't ready and one isn't placed",
      v1,
      [pod("a"), pod("b", { node: "" }), pod("c", { status: ready })],
      ["stop b: too many replicas"],
    ],
    [
      "two too many, of which one isn't ready",
      v1,
      [pod("a", { status: ready }), pod("b", { status: ready }), pod("c"), pod("d", { status: ready })],
      ["stop c: too many replicas", "stop a: too many replicas"],
    ],
    [
      "one stopped before it was placed",
      v1,
      [pod("a"), pod("b"), pod("c", { node: "", stopping: true })],
      ["forget c: stopped before it was placed"],
    ],
    [
      "its node was forgotten",
      v1,
      [pod("a"), pod("b"), pod("c", { node: "gone" })],
      ["forget c: node gone was forgotten"],
    ],
    [
      "its node has removed it",
      v1,
      [pod("a"), pod("b"), pod("c", { stopping: true, status: { phase: PodPhase.REMOVED } })],
      ["forget c: its node has removed it"],
    ],
    [
      "one that isn't restarted has ended ten seconds ago",
      v1,
      [pod("a"), endedPod("b", nowMs - 10_000)],
      ["stop b: its containers have ended", "create 1: too few replicas"],
    ],
    ["one that isn't restarted has just ended", v1, [pod("a"), endedPod("b", nowMs - 9_999)], []],
    [
      "one that isn't restarted failed because no agent could run it",
      v1,
      [pod("a"), endedPod("b", 0, { phase: PodPhase.FAILED, reason: "InvalidSpec" })],
      [],
    ],
    [
      "one whose restart policy is Always is said to have ended",
      v1,
      [pod("a"), pod("b", { status: { phase: PodPhase.FAILED }, observedAtMs: 0 })],
      [],
    ],
    [
      "its node has evicted it",
      v1,
      [pod("a"), pod("b", { status: { phase: PodPhase.FAILED, reason: "Evicted", message: "too much" } })],
      ["stop b: its node has evicted it: too much", "create 1: too few replicas"],
    ],
    [
      "it can't be run at all",
      v1,
      [pod("a"), pod("b", { status: { phase: PodPhase.FAILED, reason: "InvalidSpec", message: "no" } })],
      [],
    ],
    [
      "labels changed",
      aWorkloadEntry({ labels: { a: "b" } }),
      [pod("a"), pod("b", { labels: { a: "b" } })],
      ["relabel a"],
    ],
    [
      "labels changed and a replica less is wanted",
      aWorkloadEntry({ labels: { a: "b" }, spec: { scaling: { replicas: 1 } } }),
      [pod("a", { status: ready }), pod("b", { status: ready })],
      ["relabel b", "stop a: too many replicas"],
    ],
    [
      "no replicas are wanted",
      aWorkloadEntry({ spec: { scaling: { replicas: 0 } } }),
      [pod("a")],
      ["stop a: too many replicas"],
    ],
    [
      "it is deleted",
      aWorkloadEntry({ deleting: true }),
      [pod("a"), pod("b", { stopping: true })],
      ["stop a: its workload was deleted"],
    ],
    ["it is deleted and stopped", aWorkloadEntry({ deleting: true }), [], ["forget resource"]],
    ["its record is gone", undefined, [pod("a")], ["stop a: its workload was deleted"]],
    ["nothing of it is left", undefined, [], []],
    [
      "an old revision serves",
      v1,
      [pod("a", { hash: "old", status: ready }), pod("b", { hash: "old", status: ready })],
      ["create 1: new revision"],
    ],
    [
      "an old revision is being replaced",
      v1,
      [
        pod("a", { hash: "old", status: ready }),
        pod("b", { hash: "old", status: ready }),
        pod("c", { status: ready }),
      ],
      ["stop a: an older revision"],
    ],
    [
      "an old revision never served",
      v1,
      [pod("a", { hash: "old" }), pod("b", { hash: "old" })],
      ["create 1: new revision", "stop a: an older revision", "stop b: an older revision"],
    ],
    [
      "an old revision's node is away",
      v1,
      [pod("a", { hash: "old", status: ready, node: "away" }), pod("b", { hash: "old", status: ready })],
      ["create 1: new revision", "stop a: an older revision"],
    ],
    [
      "the new revision is stuck",
      v1,
      [pod("a", { hash: "old", status: ready }), pod("b", { hash: "old", status: ready }), pod("c")],
      [],
    ],
  ] as readonly (readonly [string, ResourceEntry | undefined, readonly PodEntry[], readonly string[]])[]) {
    test(what, () => assert.deepEqual(planWorkload(input(resource, pods)).map(describeStep), steps));
  }
});

test("a quarter more are started, rounded up, and a quarter fewer may serve, rounded down", () => {
  for (const [replicas, surge, unavailable] of [
    [1, 1, 0],
    [3, 1, 0],
    [4, 1, 1],
    [5, 2, 1],
    [10, 3, 2],
  ] as const) {
    const resource = aWorkloadEntry({ spec: { scaling: { replicas } } });
    const old = Array.from({ length: replicas }, (_, i) => pod(`old-${i}`, { hash: "old", status: ready }));
    const steps = planWorkload(input(resource, old));
    const created = steps.find((step) => step.type === "create-pods");
    assert.equal(created?.count, surge, `${replicas} replicas`);
    assert.equal(
      steps.filter((step) => step.type === "stop-pod").length,
      unavailable,
      `${replicas} replicas`,
    );
  }
});

test("no step touches a pod twice", () => {
  const resource = aWorkloadEntry({ labels: { a: "b" }, spec: { scaling: { replicas: 1 } } });
  const pods = ["a", "b", "c"].map((name) => pod(name, { status: ready }));
  const touched = planWorkload(input(resource, pods)).flatMap((step) => ("pod" in step ? [step.pod] : []));
  assert.equal(new Set(touched).size, touched.length);
});

function pod(name: string, fields: PodFields = {}): PodEntry {
  return aPod({ name, hash, ...fields });
}

function input(resource: ResourceEntry | undefined, pods: readonly PodEntry[]): WorkloadInput {
  return {
    resource,
    pods,
    nodeExists: (name) => name !== "gone",
    nodeReady: (name) => name === "n1",
    nowMs,
    pickVictims: (candidates, count) => candidates.slice(0, count),
  };
}

function describeStep(step: WorkloadStep): string {
  switch (step.type) {
    case "create-pods":
      return `create ${step.count}: ${step.why}`;
    case "stop-pod":
      return `stop ${step.pod.record.name}: ${step.why}`;
    case "forget-pod":
      return `forget ${step.pod.record.name}: ${step.why}`;
    case "relabel-pod":
      return `relabel ${step.pod.record.name}`;
    case "forget-resource":
      return "forget resource";
    default:
      return step satisfies never;
  }
}

function endedPod(
  name: string,
  observedAtMs: number,
  status: PodFields["status"] = { phase: PodPhase.SUCCEEDED },
): PodEntry {
  const entry = pod(name, { status, observedAtMs });
  const podConfig = PodConfig.fromPartial({ restartPolicy: "OnFailure" });
  const template = PodTemplate.fromPartial({ ...entry.record.template, podConfig });
  return { ...entry, record: { ...entry.record, template } };
}
