import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, ContainerServiceStatus } from "@forage/proto/forage/store/v1/store";
import { PodConfig } from "@forage/proto/forest/v1/forage";
import { aPod, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { planWorkload } from "./plan.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

const NOW_MS = 1_000_000;
const READY = { ready: true, phase: PodPhase.RUNNING };
const v1 = aWorkloadEntry();
const hash = v1.workload?.templateHash ?? "";

describe("plans the steps of a workload", () => {
  for (const [what, resource, pods, steps] of [
    ["nothing runs", v1, [], ["create 2: too few replicas"]],
    ["one is missing", v1, [pod("a", { status: READY })], ["create 1: too few replicas"]],
    ["all are there", v1, [pod("a"), pod("b")], []],
    ["one is stopping", v1, [pod("a"), pod("b", { stopping: true })], ["create 1: too few replicas"]],
    [
      "one too many, of which one isn't placed",
      v1,
      [pod("a", { status: READY }), pod("b", { node: "" }), pod("c", { status: READY })],
      ["stop b: too many replicas"],
    ],
    [
      "one too many, one isn't ready and one isn't placed",
      v1,
      [pod("a"), pod("b", { node: "" }), pod("c", { status: READY })],
      ["stop b: too many replicas"],
    ],
    [
      "two too many, of which one isn't ready",
      v1,
      [pod("a", { status: READY }), pod("b", { status: READY }), pod("c"), pod("d", { status: READY })],
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
      ["forget c: node gone was removed"],
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
      [pod("a"), endedPod("b", NOW_MS - 10_000)],
      ["stop b: its containers have ended", "create 1: too few replicas"],
    ],
    ["one that isn't restarted has just ended", v1, [pod("a"), endedPod("b", NOW_MS - 9_999)], []],
    [
      "one that isn't restarted failed because no agent could run it",
      v1,
      [pod("a"), endedPod("b", 0, { phase: PodPhase.FAILED, reason: "InvalidSpec" })],
      [],
    ],
    [
      "a pod with the restart policy Always is reported as ended",
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
      "labels changed and one replica less is desired",
      aWorkloadEntry({ labels: { a: "b" }, spec: { scaling: { replicas: 1 } } }),
      [pod("a", { status: READY }), pod("b", { status: READY })],
      ["relabel b", "stop a: too many replicas"],
    ],
    [
      "no replicas are desired",
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
      [pod("a", { hash: "old", status: READY }), pod("b", { hash: "old", status: READY })],
      ["create 1: new revision"],
    ],
    [
      "an old revision is being replaced",
      v1,
      [
        pod("a", { hash: "old", status: READY }),
        pod("b", { hash: "old", status: READY }),
        pod("c", { status: READY }),
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
      [pod("a", { hash: "old", status: READY, node: "away" }), pod("b", { hash: "old", status: READY })],
      ["create 1: new revision"],
    ],
    [
      "an old revision's node is away, and enough serve without it",
      v1,
      [
        pod("a", { hash: "old", status: READY, node: "away" }),
        pod("b", { hash: "old", status: READY }),
        pod("c", { status: READY }),
      ],
      ["stop a: an older revision"],
    ],
    [
      "the new revision is stuck",
      v1,
      [pod("a", { hash: "old", status: READY }), pod("b", { hash: "old", status: READY }), pod("c")],
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
    const old = Array.from({ length: replicas }, (_, i) => pod(`old-${i}`, { hash: "old", status: READY }));
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

describe("how one revision takes the place of another", () => {
  const old = (name: string, fields: PodFields = {}) => pod(name, { hash: "old", status: READY, ...fields });
  const oldStopping = (name: string, fields: PodFields = {}) => old(name, { stopping: true, ...fields });
  const recreate = withStrategy({ type: "Recreate" });
  const noSurge = rolling("0", "1");
  const reason = "an older revision, and Recreate stops all of it first";
  for (const [what, resource, pods, steps] of [
    ["Recreate stops all", recreate, [old("a"), old("b")], [`stop a: ${reason}`, `stop b: ${reason}`]],
    ["Recreate makes none while one stops", recreate, [oldStopping("a")], []],
    ["Recreate, one has yet to stop", recreate, [oldStopping("a"), old("b")], [`stop b: ${reason}`]],
    ["Recreate makes all once none is left", recreate, [], ["create 2: new revision"]],
    [
      "Recreate waits for none that stops on a lost node",
      recreate,
      [oldStopping("a", { node: "away" })],
      ["create 2: new revision"],
    ],
    [
      "Recreate replaces a pod of the same revision at once",
      recreate,
      [pod("a", { status: READY }), pod("b", { stopping: true })],
      ["create 1: too few replicas"],
    ],
    ["without surge one goes first", noSurge, [old("a"), old("b")], ["stop a: an older revision"]],
    ["without surge none is made while one stops", noSurge, [oldStopping("a"), old("b")], []],
    ["without surge one is made once one has stopped", noSurge, [old("b")], ["create 1: new revision"]],
    [
      "without surge none waits for a lost node",
      noSurge,
      [oldStopping("a", { node: "away" }), old("b")],
      ["create 1: new revision"],
    ],
    [
      "all at once",
      rolling("100%", "100%"),
      [old("a"), old("b")],
      ["create 2: new revision", "stop a: an older revision", "stop b: an older revision"],
    ],
    ["both rounded to nothing", rolling("0", "10%"), [old("a"), old("b")], ["stop a: an older revision"]],
    [
      "one that has just become ready isn't available yet",
      withAnnotations({ "forage.dev/min-ready-seconds": "10" }),
      [old("a"), old("b"), pod("c", { status: READY, observedAtMs: NOW_MS - 9_999 })],
      [],
    ],
    [
      "one that has been ready for long enough is",
      withAnnotations({ "forage.dev/min-ready-seconds": "10" }),
      [old("a"), old("b"), pod("c", { status: READY, observedAtMs: NOW_MS - 10_000 })],
      ["stop a: an older revision"],
    ],
  ] as readonly (readonly [string, ResourceEntry, readonly PodEntry[], readonly string[]])[]) {
    test(what, () => {
      // The strategy is none of what pods are made of.
      assert.equal(resource.workload?.templateHash.length, 64);
      const named = pods.map((entry) =>
        entry.record.templateHash === hash
          ? { ...entry, record: { ...entry.record, templateHash: resource.workload?.templateHash ?? "" } }
          : entry,
      );
      assert.deepEqual(planWorkload(input(resource, named)).map(describeStep), steps);
    });
  }
});

test("no step touches a pod twice", () => {
  const resource = aWorkloadEntry({ labels: { a: "b" }, spec: { scaling: { replicas: 1 } } });
  const pods = ["a", "b", "c"].map((name) => pod(name, { status: READY }));
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
    imagesOn: () => ({ type: "present" }),
    nodeReady: (name) => name === "n1",
    nowMs: NOW_MS,
    upSinceMs: 0,
    status: settledStatus(resource),
    revisions: [],
    unschedulable: () => undefined,
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
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
    case "start-rollout":
      return `start revision ${step.revision.number}`;
    case "update-rollout":
      return `update: ${step.why}`;
    case "forget-resource":
      return "forget resource";
    default:
      return step satisfies never;
  }
}

/** Returns the status of a finished rollout, so that only pods are left to maintain. */
function settledStatus(resource: ResourceEntry | undefined): ContainerServiceStatus | undefined {
  const templateHash = resource?.wanted?.templateHash;
  if (templateHash === undefined) return undefined;
  const attempt = { templateHash, revision: 1, state: AttemptState.SUCCEEDED };
  return ContainerServiceStatus.fromPartial({ attempt });
}

function withStrategy(updateStrategy: object, replicas = 2): ResourceEntry {
  return aWorkloadEntry({ spec: { scaling: { replicas }, updateStrategy } });
}

function rolling(maxSurge: string, maxUnavailable: string, replicas = 2): ResourceEntry {
  return withStrategy({ type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } }, replicas);
}

function withAnnotations(annotations: Readonly<Record<string, string>>): ResourceEntry {
  return aWorkloadEntry({ spec: { podConfig: { annotations } } });
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
