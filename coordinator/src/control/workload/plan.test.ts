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
    ["no pod exists", v1, [], ["create 2: too few replicas"]],
    ["a pod is missing", v1, [pod("a", { status: READY })], ["create 1: too few replicas"]],
    ["all pods exist", v1, [pod("a"), pod("b")], []],
    ["a pod is stopping", v1, [pod("a"), pod("b", { stopping: true })], ["create 1: too few replicas"]],
    [
      "one pod too many, one of them unplaced",
      v1,
      [pod("a", { status: READY }), pod("b", { node: "" }), pod("c", { status: READY })],
      ["stop b: too many replicas"],
    ],
    [
      "one pod too many, one unready and one unplaced",
      v1,
      [pod("a"), pod("b", { node: "" }), pod("c", { status: READY })],
      ["stop b: too many replicas"],
    ],
    [
      "two pods too many, one of them unready",
      v1,
      [pod("a", { status: READY }), pod("b", { status: READY }), pod("c"), pod("d", { status: READY })],
      ["stop c: too many replicas", "stop a: too many replicas"],
    ],
    [
      "a pod was stopped before it was placed",
      v1,
      [pod("a"), pod("b"), pod("c", { node: "", stopping: true })],
      ["forget c: stopped before it was placed"],
    ],
    [
      "the node of a pod was removed",
      v1,
      [pod("a"), pod("b"), pod("c", { node: "gone" })],
      ["forget c: node gone was removed"],
    ],
    [
      "a node has removed its pod",
      v1,
      [pod("a"), pod("b"), pod("c", { stopping: true, status: { phase: PodPhase.REMOVED } })],
      ["forget c: its node has removed it"],
    ],
    [
      "a pod without restarts ended ten seconds ago",
      v1,
      [pod("a"), endedPod("b", NOW_MS - 10_000)],
      ["stop b: its containers have ended", "create 1: too few replicas"],
    ],
    ["a pod without restarts has just ended", v1, [pod("a"), endedPod("b", NOW_MS - 9_999)], []],
    [
      "a pod without restarts has an invalid specification",
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
      "a node has evicted its pod",
      v1,
      [pod("a"), pod("b", { status: { phase: PodPhase.FAILED, reason: "Evicted", message: "too much" } })],
      ["stop b: its node has evicted it: too much", "create 1: too few replicas"],
    ],
    [
      "a pod has an invalid specification",
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
      "labels changed and one replica fewer is desired",
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
      "the workload is being deleted",
      aWorkloadEntry({ deleting: true }),
      [pod("a"), pod("b", { stopping: true })],
      ["stop a: its workload was deleted"],
    ],
    [
      "the workload is being deleted and has no pods",
      aWorkloadEntry({ deleting: true }),
      [],
      ["forget resource"],
    ],
    ["the record is gone, but a pod is left", undefined, [pod("a")], ["stop a: its workload was deleted"]],
    ["neither the record nor a pod is left", undefined, [], []],
    [
      "pods of an old revision are ready",
      v1,
      [pod("a", { hash: "old", status: READY }), pod("b", { hash: "old", status: READY })],
      ["create 1: new revision"],
    ],
    [
      "a pod of the new revision is ready too",
      v1,
      [
        pod("a", { hash: "old", status: READY }),
        pod("b", { hash: "old", status: READY }),
        pod("c", { status: READY }),
      ],
      ["stop a: an older revision"],
    ],
    [
      "no pod of an old revision was ever ready",
      v1,
      [pod("a", { hash: "old" }), pod("b", { hash: "old" })],
      ["create 1: new revision", "stop a: an older revision", "stop b: an older revision"],
    ],
    [
      "the node of an old pod is unreachable",
      v1,
      [pod("a", { hash: "old", status: READY, node: "away" }), pod("b", { hash: "old", status: READY })],
      ["create 1: new revision"],
    ],
    [
      "the node of an old pod is unreachable, and enough other pods are ready",
      v1,
      [
        pod("a", { hash: "old", status: READY, node: "away" }),
        pod("b", { hash: "old", status: READY }),
        pod("c", { status: READY }),
      ],
      ["stop a: an older revision"],
    ],
    [
      "the pod of the new revision isn't ready",
      v1,
      [pod("a", { hash: "old", status: READY }), pod("b", { hash: "old", status: READY }), pod("c")],
      [],
    ],
  ] as readonly (readonly [string, ResourceEntry | undefined, readonly PodEntry[], readonly string[]])[]) {
    test(what, () => assert.deepEqual(planWorkload(input(resource, pods)).map(describeStep), steps));
  }
});

test("by default allows 25 % surge, rounded up, and 25 % unavailable pods, rounded down", () => {
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

describe("replacing the pods of an old revision", () => {
  const old = (name: string, fields: PodFields = {}) => pod(name, { hash: "old", status: READY, ...fields });
  const oldStopping = (name: string, fields: PodFields = {}) => old(name, { stopping: true, ...fields });
  const recreate = withStrategy({ type: "Recreate" });
  const noSurge = rolling("0", "1");
  const reason = "an older revision, and Recreate stops all of it first";
  for (const [what, resource, pods, steps] of [
    [
      "Recreate stops all old pods",
      recreate,
      [old("a"), old("b")],
      [`stop a: ${reason}`, `stop b: ${reason}`],
    ],
    ["Recreate creates no pod while an old one is stopping", recreate, [oldStopping("a")], []],
    ["Recreate stops the last old pod", recreate, [oldStopping("a"), old("b")], [`stop b: ${reason}`]],
    ["Recreate creates all pods once no old one is left", recreate, [], ["create 2: new revision"]],
    [
      "Recreate doesn't wait for a pod on a lost node",
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
    [
      "without surge an old pod is stopped first",
      noSurge,
      [old("a"), old("b")],
      ["stop a: an older revision"],
    ],
    [
      "without surge no pod is created while an old one is stopping",
      noSurge,
      [oldStopping("a"), old("b")],
      [],
    ],
    [
      "without surge a pod is created once an old one has stopped",
      noSurge,
      [old("b")],
      ["create 1: new revision"],
    ],
    [
      "without surge no pod on a lost node is waited for",
      noSurge,
      [oldStopping("a", { node: "away" }), old("b")],
      ["create 1: new revision"],
    ],
    [
      "all pods may be replaced at once",
      rolling("100%", "100%"),
      [old("a"), old("b")],
      ["create 2: new revision", "stop a: an older revision", "stop b: an older revision"],
    ],
    [
      "both limits are rounded down to 0",
      rolling("0", "10%"),
      [old("a"), old("b")],
      ["stop a: an older revision"],
    ],
    [
      "a new pod isn't available before its minimum ready time",
      withAnnotations({ "forage.dev/min-ready-seconds": "10" }),
      [old("a"), old("b"), pod("c", { status: READY, observedAtMs: NOW_MS - 9_999 })],
      [],
    ],
    [
      "a new pod is available after its minimum ready time",
      withAnnotations({ "forage.dev/min-ready-seconds": "10" }),
      [old("a"), old("b"), pod("c", { status: READY, observedAtMs: NOW_MS - 10_000 })],
      ["stop a: an older revision"],
    ],
  ] as readonly (readonly [string, ResourceEntry, readonly PodEntry[], readonly string[]])[]) {
    test(what, () => {
      // The update strategy is not part of the template.
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

test("a plan changes no pod twice", () => {
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

/** Returns the status of a finished rollout, so that the plan only maintains pods. */
function settledStatus(resource: ResourceEntry | undefined): ContainerServiceStatus | undefined {
  const templateHash = resource?.applied?.templateHash;
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
