import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { RolloutReason, RolloutResource } from "@forage/proto/forage/store/v1/store";
import { aPod } from "../../../test/support/entries.ts";
import type { ProgressInput } from "../rollout/progress-input.ts";
import { describeWaiting, failureOf } from "./pod-failure.ts";

type Container = Parameters<typeof PodStatus.fromPartial>[0]["containers"] extends (infer C)[] | undefined
  ? C
  : never;

const CRASHED = { exitCode: 3, reason: "Error", message: "no such table\n" };
const waiting = (reason: string, message = "") => ({ $case: "waiting" as const, value: { reason, message } });

describe("the reason why a pod isn't ready, and whether it is final", () => {
  for (const [what, container, message, failure] of [
    ["its container is being created", { state: waiting("ContainerCreating") }, "1 starting", undefined],
    [
      "its image is pulled",
      { state: waiting("ImagePull", "12 of 40 MB") },
      "1 ImagePull: 12 of 40 MB (on node n1)",
      undefined,
    ],
    [
      "the registry is unavailable",
      { state: waiting("ImagePullBackOff", "no route"), restartCount: 9 },
      "1 ImagePullBackOff: no route (on node n1)",
      undefined,
    ],
    [
      "its image doesn't exist",
      { state: waiting("ErrImageNotFound", "app:v9: not found") },
      "1 ErrImageNotFound: app:v9: not found (on node n1)",
      "IMAGE",
    ],
    [
      "its image is denied",
      { state: waiting("ErrImageDenied", "no") },
      "1 ErrImageDenied: no (on node n1)",
      "IMAGE",
    ],
    [
      "it has crashed once",
      { state: waiting("CrashLoopBackOff", "at once"), restartCount: 1, lastTermination: CRASHED },
      "1 CrashLoopBackOff: at once; container main exited with code 3 (Error); last lines: no such table",
      undefined,
    ],
    [
      "it keeps crashing",
      { state: waiting("CrashLoopBackOff", "in 10 s"), restartCount: 2, lastTermination: CRASHED },
      "1 CrashLoopBackOff: in 10 s; container main exited with code 3 (Error); last lines: no such table",
      "CRASH",
    ],
    [
      "it can't be created",
      { state: waiting("CreateError", "bad mount"), restartCount: 2 },
      "1 CreateError: bad mount",
      "START",
    ],
    [
      "its creation has failed once",
      { state: waiting("CreateError", "bad mount"), restartCount: 1 },
      "1 CreateError: bad mount",
      undefined,
    ],
    [
      "its container runs",
      { state: { $case: "running" as const, value: {} } },
      "1 running but not ready",
      undefined,
    ],
    [
      "its container runs again after a signal",
      { state: { $case: "running" as const, value: {} }, lastTermination: { signal: 9, exitCode: 137 } },
      "1 container main was killed by signal 9",
      undefined,
    ],
    [
      "its container has ended",
      { state: { $case: "terminated" as const, value: { exitCode: 0, reason: "Completed" } } },
      "1 container main exited with code 0 (Completed)",
      undefined,
    ],
  ] as readonly (readonly [string, Container, string, string | undefined])[]) {
    test(what, () => {
      const pods = [aPod({ status: { containers: [{ name: "main", ...container }] } })];
      assert.equal(describeWaiting(pods, input), message);
      const found = failureOf(pods, input);
      assert.equal(wordOf(found?.reason), failure);
      if (found !== undefined) assert.equal(found.message, `pod web-1: ${message.slice(2)}`);
    });
  }
});

test("reports a pod's own reason when its containers have none", () => {
  const status = { reason: "NetworkNotReady", message: "no address left" };
  assert.equal(describeWaiting([aPod({ status })], input), "1 NetworkNotReady: no address left");
});

test("explains a running but unready container by the pod's message, and ignores completed init containers", () => {
  const done = { $case: "terminated" as const, value: { exitCode: 0, reason: "Completed" } };
  const containers = [
    { name: "seed", init: true, ready: true, state: done },
    { name: "main", state: { $case: "running" as const, value: {} } },
  ];
  const status = { reason: "ContainersNotReady", message: "container main: readiness probe fails: refused" };
  assert.equal(
    describeWaiting([aPod({ status: { ...status, containers } })], input),
    "1 ContainersNotReady: container main: readiness probe fails: refused",
  );
});

test("prefers reasons of images and init containers to those of containers that wait for them", () => {
  const running = { $case: "running" as const, value: {} };
  const seed = { name: "seed", init: true, state: running };
  const side = { name: "side", state: waiting("PodInitializing") };
  const pulled = waiting("ImagePull", "pulling app:1: 1 of 3 layers, 51 of 80 MiB");
  const message = (containers: readonly Container[]) =>
    describeWaiting([aPod({ status: { containers: [...containers] } })], input);
  assert.equal(
    message([seed, side, { name: "main", state: pulled }]),
    "1 ImagePull: pulling app:1: 1 of 3 layers, 51 of 80 MiB (on node n1)",
  );
  assert.equal(message([seed, side, { ...side, name: "main" }]), "1 PodInitializing");
});

test("counts pods with the same reason, and limits the number of reasons", () => {
  const pods = ["a", "a", "b", "c", "d", "e"].map((reason, index) =>
    aPod({ name: `p${index}`, status: { containers: [{ name: "main", state: waiting(reason) }] } }),
  );
  assert.equal(describeWaiting(pods, input), "2 a; 1 b; 1 c; and 2 other causes");
});

test("gives no reason for ready pods", () => {
  assert.equal(describeWaiting([aPod({ status: { ready: true } })], input), "");
  assert.equal(failureOf([aPod({ status: { ready: true } })], input), undefined);
});

const input: ProgressInput = {
  target: RolloutResource.fromPartial({}),
  rolloutId: "r-1",
  startedMs: 0,
  resource: undefined,
  pods: [],
  unschedulable: () => undefined,
  isReady: (pod) => pod.status?.ready ?? false,
  readyEndpoints: 0,
  nowMs: 0,
  limits: { deadlineMs: 1, placementMs: 1, stableMs: 0 },
};

function wordOf(reason: RolloutReason | undefined): string | undefined {
  return Object.entries(RolloutReason).find(([, value]) => value === reason)?.[0];
}
