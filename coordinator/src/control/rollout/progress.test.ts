import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  AttemptState,
  RolloutAttempt,
  RolloutReason,
  RolloutResource,
} from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { aPod, aServiceEntry, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import type { ServiceFailure } from "../../destination/service-failure.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { RolloutView } from "../workload/rollout-view.ts";
import { nextEvaluationMs, progressOf } from "./progress.ts";
import type { ProgressInput, ResourceProgress } from "./progress-input.ts";

const entry = aWorkloadEntry();
const hash = entry.workload?.templateHash ?? "";
const DEADLINE_MS = 600_000;
const STARTED_MS = 1_000_000;
const READY = { ready: true };
const NO_TARGET: ServiceFailure = {
  reason: "TargetNotFound",
  message: "there is no container_service/web",
  mayPass: false,
};
const NO_PORT: ServiceFailure = {
  reason: "PortNotFound",
  message: "port 80 is not published",
  mayPass: true,
};

describe("progress of a workload that the apply didn't change", () => {
  for (const [what, fields, expected] of [
    ["no pods yet", {}, "PENDING 0/2 ready"],
    ["pods without a node", { pods: [pod("a", { node: "" })] }, "PENDING 0/2 ready; 1 being placed"],
    [
      "no node fits",
      {
        pods: [pod("a", { node: "" })],
        unschedulable: () => ({ summary: "0/3 nodes", sinceMs: STARTED_MS }),
      },
      "PENDING 0/2 ready; 1 waiting for a node: 0/3 nodes",
    ],
    [
      "no node has fitted for the placement limit",
      {
        pods: [pod("a", { node: "" })],
        unschedulable: () => ({ summary: "0/3 nodes", sinceMs: STARTED_MS - 20_000 }),
      },
      "FAILED UNSCHEDULABLE 0/2 ready; no node fits: 0/3 nodes",
    ],
    ["one starts", { pods: [pod("a"), pod("b", { status: READY })] }, "IN_PROGRESS 1/2 ready; 1 starting"],
    [
      "a pod of an old revision is left",
      { pods: [pod("a", { status: READY }), pod("b", { status: READY }), pod("c", { hash: "old" })] },
      "IN_PROGRESS 2/2 ready; 1 of an older revision left",
    ],
    [
      "all are ready",
      { pods: [pod("a", { status: READY }), pod("b", { status: READY })] },
      "SUCCEEDED 2/2 ready",
    ],
    [
      "pods of an old revision are stopping",
      {
        pods: [
          pod("a", { status: READY }),
          pod("b", { status: READY }),
          pod("c", { hash: "old", stopping: true }),
        ],
      },
      "SUCCEEDED 2/2 ready",
    ],
    [
      "a pod has not been ready for long enough",
      {
        pods: [pod("a", { status: READY }), pod("b", { status: READY, observedAtMs: STARTED_MS })],
        limits: { deadlineMs: DEADLINE_MS, placementMs: 20_000, stableMs: 1_000 },
      },
      "IN_PROGRESS 2/2 ready",
    ],
    [
      "a pod is ready again after a crash",
      {
        pods: [
          pod("a", { status: READY }),
          pod("b", {
            status: { ready: true, containers: [{ name: "main", restartCount: 1 }] },
            observedAtMs: STARTED_MS,
          }),
        ],
        nowMs: STARTED_MS + 9_999,
      },
      "IN_PROGRESS 2/2 ready",
    ],
    [
      "no replicas are desired",
      { resource: aWorkloadEntry({ spec: { scaling: { replicas: 0 } } }) },
      "SUCCEEDED 0/0 ready",
    ],
    [
      "the deadline has passed",
      { pods: [pod("a"), pod("b", { status: READY })], nowMs: STARTED_MS + DEADLINE_MS },
      "FAILED DEADLINE 1/2 ready after the progress deadline of 600 s; 1 starting",
    ],
    [
      "the resource was applied with other content",
      { resource: aWorkloadEntry({ specHash: "h2", rolloutId: "r-2" }) },
      "FAILED SUPERSEDED superseded by rollout r-2",
    ],
    [
      "the resource is being deleted",
      { resource: aWorkloadEntry({ deleting: true }) },
      "FAILED SUPERSEDED was deleted by a later request",
    ],
    ["the resource is gone", { resource: undefined }, "FAILED SUPERSEDED was deleted by a later request"],
    [
      "the final state is stored",
      { target: { status: RolloutStatus.FAILED, message: "as it was", reason: RolloutReason.IMAGE } },
      "FAILED IMAGE as it was",
    ],
  ] as readonly (readonly [string, Fields, string])[]) {
    test(what, () => assert.equal(lineOf(fields), expected));
  }
});

describe("progress of a workload that the apply changed", () => {
  const { PROGRESSING, SUCCEEDED, ROLLING_BACK, ROLLED_BACK, FAILED } = AttemptState;
  const two = [pod("a", { status: READY }), pod("b", { status: READY })];
  const change = { action: "update" };
  const cause = { message: "0/2 ready; it crashed", reason: RolloutReason.CRASH };
  const canary = { type: "canary", pods: 1 } as const;
  for (const [what, fields, expected] of [
    ["nothing has begun", { pods: two }, "IN_PROGRESS 2/2 ready"],
    [
      "the attempt is in progress",
      { rollout: view({ state: PROGRESSING }), pods: two },
      "IN_PROGRESS 2/2 ready",
    ],
    [
      "the rollout is paused",
      { rollout: view({ state: PROGRESSING }, { hold: { type: "paused" } }), pods: two.slice(1) },
      "IN_PROGRESS 1/2 ready; paused until: forage rollout resume k/web -n shop",
    ],
    [
      "a pod of a canary starts",
      { rollout: view({ state: PROGRESSING }, { hold: canary }), pods: [pod("a")] },
      "IN_PROGRESS 0/2 ready; 1 starting; is paused after 1 pod of the new revision",
    ],
    [
      "a canary waits for its promotion",
      {
        rollout: view({ state: PROGRESSING }, { hold: canary, waitsForPromotion: true }),
        pods: [pod("a", { status: READY }), pod("b", { hash: "old" })],
      },
      "IN_PROGRESS 1/2 ready; 1 of an older revision left; waits for a promotion after 1 pod of the new revision: forage rollout promote k/web -n shop, or undo",
    ],
    [
      "the attempt succeeded",
      { rollout: view({ state: SUCCEEDED, message: "2/2 ready" }) },
      "SUCCEEDED 2/2 ready",
    ],
    [
      "the attempt failed",
      { rollout: view({ state: FAILED, ...cause }) },
      "FAILED CRASH 0/2 ready; it crashed",
    ],
    [
      "it is rolling back",
      { rollout: view({ state: ROLLING_BACK, rolledBackTo: 3, ...cause }), pods: two.slice(1) },
      "IN_PROGRESS rolling back to revision 3: 0/2 ready; it crashed; now 1/2 ready",
    ],
    [
      "it was rolled back",
      { rollout: view({ state: ROLLED_BACK, rolledBackTo: 3, ...cause }) },
      "ROLLED_BACK CRASH rolled back to revision 3: 0/2 ready; it crashed",
    ],
    [
      "the same content was applied again",
      { rollout: view({ state: PROGRESSING }), target: { generation: 1n } },
      "FAILED SUPERSEDED superseded by rollout r-1",
    ],
  ] as readonly (readonly [string, Fields, string])[]) {
    test(what, () => assert.equal(lineOf({ ...fields, target: { ...change, ...fields.target } }), expected));
  }
});

describe("progress of other resources", () => {
  const removal = { action: "remove" };
  for (const [what, fields, expected] of [
    ["a service has no endpoints", { resource: aServiceEntry() }, "SUCCEEDED 0 endpoints ready"],
    [
      "a service whose target doesn't exist",
      { resource: aServiceEntry(), serviceFailure: NO_TARGET },
      "SUCCEEDED 0 endpoints ready: TargetNotFound: there is no container_service/web",
    ],
    [
      "a service whose port isn't published yet",
      { resource: aServiceEntry(), serviceFailure: NO_PORT },
      "IN_PROGRESS 0 endpoints ready: PortNotFound: port 80 is not published",
    ],
    [
      "a service whose port isn't published at the deadline",
      { resource: aServiceEntry(), serviceFailure: NO_PORT, nowMs: 1_700_000_000_000 },
      "SUCCEEDED 0 endpoints ready: PortNotFound: port 80 is not published",
    ],
    [
      "a service whose target's pods still start",
      { resource: aServiceEntry(), readyEndpoints: 1, targetProgress: behind(RolloutStatus.IN_PROGRESS) },
      "IN_PROGRESS 1 endpoint ready; waits for container_service/web",
    ],
    [
      "a service whose target succeeded",
      { resource: aServiceEntry(), readyEndpoints: 2, targetProgress: behind(RolloutStatus.SUCCEEDED) },
      "SUCCEEDED 2 endpoints ready",
    ],
    [
      "a service whose target failed",
      { resource: aServiceEntry(), targetProgress: behind(RolloutStatus.FAILED) },
      "FAILED CRASH 0 endpoints ready: container_service/web failed",
    ],
    [
      "a service whose target failed while older pods serve",
      { resource: aServiceEntry(), readyEndpoints: 2, targetProgress: behind(RolloutStatus.FAILED) },
      "SUCCEEDED 2 endpoints ready",
    ],
    [
      "a service whose target of another rollout still starts",
      { resource: aServiceEntry(), idleTarget: { name: "web", settled: false } },
      "IN_PROGRESS 0 endpoints ready; no pod of container_service/web is ready",
    ],
    [
      "a service whose target of another rollout starts until the deadline",
      {
        resource: aServiceEntry(),
        idleTarget: { name: "web", settled: false },
        nowMs: 1_700_000_000_000,
      },
      "SUCCEEDED 0 endpoints ready: no pod of container_service/web is ready",
    ],
    [
      "a service whose target of another rollout has no starting pod",
      { resource: aServiceEntry(), idleTarget: { name: "web", settled: true } },
      "SUCCEEDED 0 endpoints ready: no pod of container_service/web is ready",
    ],
    [
      "a service with an endpoint",
      { resource: aServiceEntry(), readyEndpoints: 1 },
      "SUCCEEDED 1 endpoint ready",
    ],
    ["a removed workload is gone", { resource: undefined, target: removal }, "SUCCEEDED removed"],
    [
      "a removed workload is stopping",
      { resource: aWorkloadEntry({ deleting: true }), target: removal, pods: [pod("a", { stopping: true })] },
      "IN_PROGRESS stopping 1 pod",
    ],
    [
      "a removed workload was applied again",
      { target: removal, resource: aWorkloadEntry({ rolloutId: "r-9" }) },
      "FAILED SUPERSEDED applied again by rollout r-9",
    ],
    [
      "a removed workload doesn't stop in time",
      {
        resource: aWorkloadEntry({ deleting: true }),
        target: removal,
        pods: [pod("a", { stopping: true }), pod("b", { stopping: true, node: "n2" })],
        nowMs: STARTED_MS + DEADLINE_MS,
      },
      "FAILED DEADLINE stopping 2 pods after the progress deadline of 600 s, on n1, n2",
    ],
  ] as readonly (readonly [string, Fields, string])[]) {
    test(what, () => assert.equal(lineOf(fields), expected));
  }
});

describe("nextEvaluationMs", () => {
  test("at the deadline", () => assert.equal(nextEvaluationMs(inputOf({})), DEADLINE_MS));
  test("when a pod has waited for a node for too long", () => {
    const pods = [pod("a", { node: "" })];
    const unschedulable = () => ({ summary: "", sinceMs: STARTED_MS - 5_000 });
    assert.equal(nextEvaluationMs(inputOf({ pods, unschedulable })), 15_000);
  });
  test("when a ready pod becomes available", () => {
    const pods = [pod("a", { status: READY, observedAtMs: STARTED_MS })];
    const limits = { deadlineMs: DEADLINE_MS, placementMs: 20_000, stableMs: 1_000 };
    assert.equal(nextEvaluationMs(inputOf({ pods, limits })), 1_000);
  });
  test("never at once, even if everything is due", () => {
    const pods = [pod("a", { node: "" })];
    const unschedulable = () => ({ summary: "", sinceMs: 0 });
    assert.ok(nextEvaluationMs(inputOf({ pods, unschedulable, nowMs: STARTED_MS + DEADLINE_MS - 1 })) >= 10);
    assert.ok(nextEvaluationMs(inputOf({ pods, unschedulable, nowMs: STARTED_MS + DEADLINE_MS })) >= 1_000);
  });
});

function view(attempt: Partial<RolloutAttempt>, fields: Partial<RolloutView> = {}): RolloutView {
  return {
    attempt: RolloutAttempt.fromPartial(attempt),
    hold: { type: "none" },
    waitsForPromotion: false,
    prefetchStatus: "",
    goodRevision: 0,
    ...fields,
  };
}

type Fields = Partial<Omit<ProgressInput, "target">> & { readonly target?: Partial<RolloutResource> };

function inputOf(fields: Fields): ProgressInput {
  const { target, ...rest } = fields;
  return {
    target: RolloutResource.fromPartial({
      kind: "k",
      name: "web",
      action: "unchanged",
      specHash: "h1",
      ...target,
    }),
    rolloutId: "r-1",
    startedMs: STARTED_MS,
    resource: entry,
    pods: [],
    unschedulable: () => undefined,
    isReady: (p) => p.status?.ready ?? false,
    readyEndpoints: 0,
    nowMs: STARTED_MS,
    limits: { deadlineMs: DEADLINE_MS, placementMs: 20_000, stableMs: 0 },
    ...rest,
  };
}

function lineOf(fields: Fields): string {
  const { status, reason, message, name, action } = progressOf(inputOf(fields));
  assert.deepEqual([name, action], ["web", fields.target?.action ?? "unchanged"]);
  const word = wordOf(RolloutStatus, status);
  return [word, ...(reason === 0 ? [] : [wordOf(RolloutReason, reason)]), message].join(" ");
}

function wordOf(words: Readonly<Record<string, number>>, value: number): string {
  return Object.entries(words).find(([, number]) => number === value)?.[0] ?? `${value}`;
}

function pod(name: string, fields: PodFields = {}): PodEntry {
  return aPod({ name, hash, ...fields });
}

function behind(status: RolloutStatus): ResourceProgress {
  const reason = status === RolloutStatus.FAILED ? RolloutReason.CRASH : RolloutReason.UNSPECIFIED;
  return { kind: "container_service", name: "web", action: "update", status, message: "", reason };
}
