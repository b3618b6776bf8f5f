import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, ContainerServiceStatus, RolloutReason } from "@forage/proto/forage/store/v1/store";
import { aPod, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import type { PodEntry } from "../../state/entries.ts";
import { planWorkload } from "./plan.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import { prefetchRequest } from "./prefetch-status.ts";
import { rolloutView } from "./rollout-view.ts";
import type { WorkloadInput } from "./workload-input.ts";

const DEADLINE_MS = 600_000;
const SERVING = { ready: true, phase: PodPhase.RUNNING };
const PRESENT: ImagesOnNode = { type: "present" };
const PULLING: ImagesOnNode = { type: "pulling", message: "1 of 3 layers" };
const DOWN: ImagesOnNode = {
  ...{ type: "failed", reason: "ImagePullBackOff", image: "app:v2", message: "connection refused" },
};
const MISSING: ImagesOnNode = {
  ...{ type: "failed", reason: "ErrImageNotFound", image: "app:v2", message: "no such image" },
};
const SILENT: ImagesOnNode = { type: "unanswered" };
const RECREATE = { type: "Recreate" };
const IN_PLACE = { type: "RollingUpdate", rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } };
const BOTH = { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "1" } };
const SURGE = { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } };

describe("a ready pod is stopped only when its node has the new image", () => {
  const two = [old("a", "n1"), old("b", "n2")];
  for (const [what, updateStrategy, pods, images, stopped] of [
    ["Recreate, no node has the image", RECREATE, two, { n1: PULLING, n2: PULLING }, []],
    ["Recreate, one node has the image", RECREATE, two, { n1: PRESENT, n2: DOWN }, []],
    ["Recreate, all nodes have the image", RECREATE, two, { n1: PRESENT, n2: PRESENT }, ["a", "b"]],
    ["Recreate, one node doesn't answer", RECREATE, two, { n1: PRESENT, n2: SILENT }, ["a", "b"]],
    ["Recreate, no pod is ready", RECREATE, [idle("a", "n1"), idle("b", "n2")], {}, ["a", "b"]],
    [
      "Recreate, one pod is already stopping",
      RECREATE,
      [old("a", "n1"), going("b", "n2")],
      { n1: DOWN, n2: DOWN },
      ["a"],
    ],
    ["in place, no node has the image", IN_PLACE, two, { n1: PULLING, n2: DOWN }, []],
    ["in place, the second node has the image", IN_PLACE, two, { n1: PULLING, n2: PRESENT }, ["b"]],
    ["in place, one pod is not ready", IN_PLACE, [old("a", "n1"), idle("b", "n2")], { n1: DOWN }, ["b"]],
    ["surge and unavailable, no node has the image", BOTH, two, { n1: PULLING, n2: PULLING }, []],
    ["surge and unavailable, one node has the image", BOTH, two, { n1: PRESENT, n2: PULLING }, ["a"]],
    ["more pods are ready than desired", BOTH, [...two, fresh("c", "n3")], { n1: DOWN, n2: DOWN }, ["a"]],
    ["surge alone", SURGE, [...two, fresh("c", "n3")], { n1: DOWN, n2: DOWN }, ["a"]],
  ] as const) {
    test(what, () => {
      const steps = planWorkload(input(updateStrategy, pods, images));
      const names = steps.flatMap((step) => (step.type === "stop-pod" ? [step.pod.record.name] : []));
      assert.deepEqual(names, stopped);
    });
  }
});

describe("nodes that are requested to pull the image", () => {
  const two = [old("a", "n1"), old("b", "n2")];
  for (const [what, updateStrategy, pods, nodes] of [
    ["Recreate", RECREATE, two, ["n1", "n2"]],
    ["Recreate, while a pod is stopping", RECREATE, [going("a", "n1")], ["n1"]],
    ["in place", IN_PLACE, two, ["n1", "n2"]],
    ["in place, one pod is replaced", IN_PLACE, [old("a", "n1"), fresh("b", "n2")], ["n1"]],
    [
      "in place, one of two pods on a node is replaced",
      IN_PLACE,
      [old("a", "n1"), fresh("b", "n1")],
      undefined,
    ],
    ["a surge", SURGE, two, undefined],
    ["a pod on an unreachable node", RECREATE, [old("a", "n1"), old("b", "lost")], ["n1"]],
    ["all pods are replaced", RECREATE, [fresh("a", "n1"), fresh("b", "n2")], undefined],
  ] as const) {
    test(what, () => assert.deepEqual(prefetchRequest(input(updateStrategy, pods, {}))?.nodes, nodes));
  }

  test("excludes nodes whose running pods have the image, unless its tag may move", () => {
    const same = { container: { name: "main", image: "app:v1", command: ["other"] } };
    assert.equal(prefetchRequest(input(RECREATE, two, {}, same)), undefined);
    const always = { container: { ...same.container, imagePullPolicy: "Always" } };
    assert.deepEqual(prefetchRequest(input(RECREATE, two, {}, always))?.nodes, ["n1", "n2"]);
  });

  test("excludes nodes if changed placement rules may move the new pods elsewhere", () => {
    const podConfig = { nodeSelector: { disk: "ssd" } };
    assert.equal(prefetchRequest(input(RECREATE, two, {}, { podConfig })), undefined);
  });
});

test("reports an unavailable registry, and waits for it", () => {
  const given = input(RECREATE, [old("a", "n1"), old("b", "n2")], { n1: DOWN, n2: PULLING });
  assert.equal(
    rolloutView(given)?.prefetchStatus,
    "older pods stay until 2 nodes have the image; node n1: ImagePullBackOff: app:v2: connection refused",
  );
  const late = { ...given, nowMs: 5 * DEADLINE_MS };
  assert.deepEqual(planWorkload(late), []);
  const [update] = planWorkload({ ...given, nowMs: 7 * DEADLINE_MS });
  assert.match(update?.type === "update-rollout" ? update.why : "", /older pods stay until 2 nodes/);
});

test("a missing image fails the rollout before a pod is stopped", () => {
  const given = input(RECREATE, [old("a", "n1"), old("b", "n2")], { n1: MISSING, n2: PULLING });
  const steps = planWorkload(given);
  assert.deepEqual(
    steps.map((step) =>
      step.type === "update-rollout" ? [step.attempt.state, step.attempt.reason] : step.type,
    ),
    [[AttemptState.FAILED, RolloutReason.IMAGE]],
  );
});

function old(name: string, node: string, fields: PodFields = {}): PodEntry {
  return aPod({ name, node, hash: "old", status: SERVING, ...fields });
}

function idle(name: string, node: string): PodEntry {
  return old(name, node, { status: { phase: PodPhase.RUNNING } });
}

function going(name: string, node: string): PodEntry {
  return old(name, node, { stopping: true });
}

/** Returns a pod of the new revision. */
function fresh(name: string, node: string): PodEntry {
  const entry = aPod({ name, node, status: SERVING, observedAtMs: 0 });
  const { workload } = resourceOf({});
  const { template, templateHash = "" } = workload ?? {};
  return { ...entry, record: { ...entry.record, template, templateHash } };
}

function resourceOf(spec: object) {
  return aWorkloadEntry({ spec: { container: { name: "main", image: "app:v2" }, ...spec } });
}

function input(
  updateStrategy: object,
  pods: readonly PodEntry[],
  images: Readonly<Record<string, ImagesOnNode>>,
  spec: object = {},
): WorkloadInput {
  const resource = resourceOf({ updateStrategy, ...spec });
  const templateHash = resource.applied?.templateHash ?? "";
  const attempt = { templateHash, revision: 2, state: AttemptState.PROGRESSING };
  return {
    resource,
    pods,
    nodeExists: () => true,
    nodeReady: (name) => name !== "lost",
    imagesOn: (_, node) => images[node] ?? { type: "unasked" },
    nowMs: 1_000,
    upSinceMs: 0,
    status: ContainerServiceStatus.fromPartial({ attempt }),
    revisions: [],
    unschedulable: () => undefined,
    limits: { deadlineMs: DEADLINE_MS, placementMs: 20_000, stableMs: 0 },
    pickVictims: (candidates, count) => candidates.slice(0, count),
  };
}
