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

const deadlineMs = 600_000;
const serving = { ready: true, phase: PodPhase.RUNNING };
const present: ImagesOnNode = { type: "present" };
const pulling: ImagesOnNode = { type: "pulling", message: "1 of 3 layers" };
const down: ImagesOnNode = {
  ...{ type: "failed", reason: "ImagePullBackOff", image: "app:v2", message: "connection refused" },
};
const missing: ImagesOnNode = {
  ...{ type: "failed", reason: "ErrImageNotFound", image: "app:v2", message: "no such image" },
};
const silent: ImagesOnNode = { type: "unanswered" };
const recreate = { type: "Recreate" };
const inPlace = { type: "RollingUpdate", rollingUpdate: { maxSurge: "0", maxUnavailable: "1" } };
const both = { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "1" } };
const surge = { type: "RollingUpdate", rollingUpdate: { maxSurge: "1", maxUnavailable: "0" } };

describe("a serving pod gives way when its node has the image", () => {
  const two = [old("a", "n1"), old("b", "n2")];
  for (const [what, updateStrategy, pods, images, stopped] of [
    ["Recreate, none has it", recreate, two, { n1: pulling, n2: pulling }, []],
    ["Recreate, one has it", recreate, two, { n1: present, n2: down }, []],
    ["Recreate, all have it", recreate, two, { n1: present, n2: present }, ["a", "b"]],
    ["Recreate, one doesn't answer", recreate, two, { n1: present, n2: silent }, ["a", "b"]],
    ["Recreate, none serves", recreate, [idle("a", "n1"), idle("b", "n2")], {}, ["a", "b"]],
    ["Recreate that has begun", recreate, [old("a", "n1"), going("b", "n2")], { n1: down, n2: down }, ["a"]],
    ["in place, none has it", inPlace, two, { n1: pulling, n2: down }, []],
    ["in place, the second has it", inPlace, two, { n1: pulling, n2: present }, ["b"]],
    ["in place, one doesn't serve", inPlace, [old("a", "n1"), idle("b", "n2")], { n1: down }, ["b"]],
    ["surge and unavailable, none has it", both, two, { n1: pulling, n2: pulling }, []],
    ["surge and unavailable, one has it", both, two, { n1: present, n2: pulling }, ["a"]],
    ["more serve than are wanted", both, [...two, fresh("c", "n3")], { n1: down, n2: down }, ["a"]],
    ["surge alone", surge, [...two, fresh("c", "n3")], { n1: down, n2: down }, ["a"]],
  ] as const) {
    test(what, () => {
      const steps = planWorkload(input(updateStrategy, pods, images));
      const names = steps.flatMap((step) => (step.type === "stop-pod" ? [step.pod.record.name] : []));
      assert.deepEqual(names, stopped);
    });
  }
});

describe("which nodes are asked", () => {
  const two = [old("a", "n1"), old("b", "n2")];
  for (const [what, updateStrategy, pods, nodes] of [
    ["Recreate", recreate, two, ["n1", "n2"]],
    ["Recreate, as long as one is stopping", recreate, [going("a", "n1")], ["n1"]],
    ["in place", inPlace, two, ["n1", "n2"]],
    ["in place, one is done", inPlace, [old("a", "n1"), fresh("b", "n2")], ["n1"]],
    ["in place, two on a node of which one is done", inPlace, [old("a", "n1"), fresh("b", "n1")], undefined],
    ["a surge", surge, two, undefined],
    ["one that isn't heard of", recreate, [old("a", "n1"), old("b", "lost")], ["n1"]],
    ["all is done", recreate, [fresh("a", "n1"), fresh("b", "n2")], undefined],
  ] as const) {
    test(what, () => assert.deepEqual(prefetchRequest(input(updateStrategy, pods, {}))?.nodes, nodes));
  }

  test("not where what runs has the same image, unless its tag may move", () => {
    const same = { container: { name: "main", image: "app:v1", command: ["other"] } };
    assert.equal(prefetchRequest(input(recreate, two, {}, same)), undefined);
    const always = { container: { ...same.container, imagePullPolicy: "Always" } };
    assert.deepEqual(prefetchRequest(input(recreate, two, {}, always))?.nodes, ["n1", "n2"]);
  });

  test("not where the new pods' rules may lead elsewhere", () => {
    const podConfig = { nodeSelector: { disk: "ssd" } };
    assert.equal(prefetchRequest(input(recreate, two, {}, { podConfig })), undefined);
  });
});

test("reports an unreachable registry and waits for it", () => {
  const given = input(recreate, [old("a", "n1"), old("b", "n2")], { n1: down, n2: pulling });
  assert.equal(
    rolloutView(given)?.prefetchStatus,
    "older pods stay until 2 nodes have the image; node n1: ImagePullBackOff: app:v2: connection refused",
  );
  const late = { ...given, nowMs: 5 * deadlineMs };
  assert.deepEqual(planWorkload(late), []);
  const [update] = planWorkload({ ...given, nowMs: 7 * deadlineMs });
  assert.match(update?.type === "update-rollout" ? update.why : "", /older pods stay until 2 nodes/);
});

test("an image that doesn't exist fails while all pods still serve", () => {
  const given = input(recreate, [old("a", "n1"), old("b", "n2")], { n1: missing, n2: pulling });
  const steps = planWorkload(given);
  assert.deepEqual(
    steps.map((step) =>
      step.type === "update-rollout" ? [step.attempt.state, step.attempt.reason] : step.type,
    ),
    [[AttemptState.FAILED, RolloutReason.IMAGE]],
  );
});

function old(name: string, node: string, fields: PodFields = {}): PodEntry {
  return aPod({ name, node, hash: "old", status: serving, ...fields });
}

function idle(name: string, node: string): PodEntry {
  return old(name, node, { status: { phase: PodPhase.RUNNING } });
}

function going(name: string, node: string): PodEntry {
  return old(name, node, { stopping: true });
}

/** Returns a pod of the new revision. */
function fresh(name: string, node: string): PodEntry {
  const entry = aPod({ name, node, status: serving, observedAtMs: 0 });
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
  const templateHash = resource.wanted?.templateHash ?? "";
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
    limits: { deadlineMs, placementMs: 20_000, stableMs: 0 },
    pickVictims: (candidates, count) => candidates.slice(0, count),
  };
}
