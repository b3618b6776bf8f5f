import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { JobStatus } from "@forage/proto/forage/store/v1/store";
import type { JobSpec } from "@forage/proto/forest/v1/forage";
import { aJobEntry, aPod, type PodFields, type ResourceFields } from "../../../test/support/entries.ts";
import { jobOf } from "../../model/job.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { type JobInput, type JobStep, nextJobEvaluationMs, planJob } from "./plan.ts";

const NOW_MS = 1_000_000;
const SUCCEEDED = { phase: PodPhase.SUCCEEDED };
const RUNNING = { phase: PodPhase.RUNNING, ready: true };
const CRASHED = {
  phase: PodPhase.FAILED,
  containers: [
    {
      name: "main",
      state: { $case: "terminated" as const, value: { exitCode: 3, reason: "Error", message: "no table\n" } },
    },
  ],
};

test("begins a new job, and then creates its pods", () => {
  assert.deepEqual(stepsOf({ config: { completions: 3, parallelism: 2 } }), ["write-status the job starts"]);
  const begun = { config: { completions: 3, parallelism: 2 }, run: {} };
  assert.deepEqual(stepsOf(begun), ["create-pod", "create-pod"]);
});

test("begins nothing while dependencies are unmet", () => {
  assert.deepEqual(stepsOf({ held: true }), []);
  assert.deepEqual(stepsOf({ held: true, run: {} }), []);
});

for (const [what, config, run, pods, expected] of [
  ["creates one pod by default", {}, {}, [], ["create-pod"]],
  [
    "creates as many pods as parallelism allows",
    { completions: 5, parallelism: 2 },
    {},
    [pod("a")],
    ["create-pod"],
  ],
  [
    "creates no more pods than completions are left",
    { completions: 5, parallelism: 4 },
    { succeeded: 3 },
    [pod("a")],
    ["create-pod"],
  ],
  ["updates the labels of pods", {}, {}, [pod("a", { labels: { release: "1" } })], ["relabel-pod a"]],
  ["creates no pod beyond parallelism", { completions: 5, parallelism: 2 }, {}, [pod("a"), pod("b")], []],
  [
    "stops pods beyond a reduced parallelism, unplaced ones first",
    { completions: 5, parallelism: 1 },
    {},
    [pod("a", { status: RUNNING }), pod("b", { node: "" })],
    ["stop-pod b more pods than desired"],
  ],
  [
    "creates pods with the lowest free indexes",
    { completions: 5, parallelism: 3, completionMode: "Indexed" },
    { succeeded: 1, completedIndexes: "1" },
    [indexed("a", 0)],
    ["create-pod 2", "create-pod 3"],
  ],
  [
    "stops a pod whose index another pod has completed",
    { completions: 2, parallelism: 2, completionMode: "Indexed" },
    { succeeded: 1, completedIndexes: "0" },
    [indexed("a", 0), indexed("b", 1)],
    ["stop-pod a another pod has completed its index"],
  ],
  [
    "replaces no pod while it is stopping on a reachable node",
    { completions: 2, parallelism: 1 },
    {},
    [pod("a", { stopping: true })],
    [],
  ],
  [
    "replaces a pod that is stopping on a lost node",
    { completions: 2, parallelism: 1 },
    {},
    [pod("a", { stopping: true, node: "lost" })],
    ["create-pod"],
  ],
  ["replaces no pod on a lost node before it is stopped", {}, {}, [pod("a", { node: "lost" })], []],
  [
    "replaces a pod that was stopped before it was placed",
    {},
    {},
    [pod("a", { stopping: true, node: "" })],
    ["forget-pod a", "create-pod"],
  ],
  ["replaces a pod of a removed node", {}, {}, [pod("a", { node: "gone" })], ["forget-pod a", "create-pod"]],
  [
    "counts an ended pod before any other step",
    { completions: 3 },
    {},
    [pod("a", { status: SUCCEEDED })],
    ["count-pods a"],
  ],
  [
    "counts an ended pod while it is stopping",
    {},
    {},
    [pod("a", { status: SUCCEEDED, stopping: true })],
    ["count-pods a"],
  ],
  [
    "counts an ended pod on a lost node",
    {},
    {},
    [pod("a", { status: CRASHED, node: "lost" })],
    ["count-pods a"],
  ],
  ["counts no pod twice", {}, { succeeded: 1 }, [counted("a", "succeeded")], ["write-status 1/1 completed"]],
  [
    "completes after the last completion",
    { completions: 2 },
    { succeeded: 2 },
    [],
    ["write-status 2/2 completed"],
  ],
  [
    "completes after an apply that lowers the completions below the counted ones",
    { completions: 2 },
    { succeeded: 3 },
    [],
    ["write-status 3/2 completed"],
  ],
  [
    "stops a counted pod that runs again",
    { completions: 2 },
    { succeeded: 1 },
    [counted("a", "succeeded", { status: RUNNING })],
    ["stop-pod a its end was already counted", "create-pod"],
  ],
  [
    "work queue: creates pods until one has succeeded",
    { parallelism: 3 },
    {},
    [pod("a"), pod("b")],
    ["create-pod"],
  ],
  [
    "work queue: creates no pod after one has succeeded",
    { parallelism: 3 },
    { succeeded: 1 },
    [pod("a"), pod("b")],
    [],
  ],
  [
    "work queue: completes after the last pod has ended",
    { parallelism: 3 },
    { succeeded: 2 },
    [],
    ["write-status 2 pods succeeded"],
  ],
  [
    "fails after more failures than backoffLimit",
    { backoffLimit: 2 },
    { failed: 3, failuresInARow: 3 },
    [],
    ["write-status failed 3 times, with a limit of 2"],
  ],
  [
    "continues after as many failures as backoffLimit",
    { backoffLimit: 3 },
    { failed: 3 },
    [],
    ["create-pod"],
  ],
  [
    "counts restarts of containers as failures, with the reason",
    { backoffLimit: 1 },
    {},
    [pod("a", { status: restarted(2) })],
    ["write-status failed twice, with a limit of 1; pod a: container main exited with code 4 (Error)"],
  ],
  [
    "continues after as many restarts as backoffLimit",
    { backoffLimit: 2 },
    {},
    [pod("a", { status: restarted(2) })],
    [],
  ],
  [
    "stops the pods of an earlier run before the new run begins",
    {},
    undefined,
    [pod("a", { run: "earlier" })],
    ["stop-pod a its job was changed and restarts"],
  ],
  [
    "waits for stopping pods of an earlier run",
    {},
    undefined,
    [pod("a", { run: "earlier", stopping: true })],
    [],
  ],
  [
    "doesn't wait for stopping pods of an earlier run on a lost node",
    {},
    undefined,
    [pod("a", { run: "earlier", stopping: true, node: "lost" })],
    ["write-status the job starts"],
  ],
] as readonly Case[]) {
  test(`pods: ${what}`, () => assert.deepEqual(stepsOf({ config, run, pods }), expected));
}

test("delays the next pod after failures by 10 s, doubling up to 6 minutes", () => {
  for (const [inARow, seconds] of [
    [1, 10],
    [2, 20],
    [5, 160],
    [6, 320],
    [7, 360],
    [60, 360],
  ] as const) {
    const run = {
      failed: 1,
      failuresInARow: inARow,
      lastFailure: { at: toTimestamp(NOW_MS - seconds * 1000 + 1) },
    };
    const given = { config: { backoffLimit: 100 }, run };
    assert.deepEqual(stepsOf(given), []);
    assert.equal(nextJobEvaluationMs(inputOf(given)), NOW_MS + 1);
    const due = { ...run, lastFailure: { at: toTimestamp(NOW_MS - seconds * 1000) } };
    assert.deepEqual(stepsOf({ ...given, run: due }), ["create-pod"]);
  }
});

test("creates the next pod at once if the last failure is in the future because the clock was set back", () => {
  const run = { failed: 1, failuresInARow: 1, lastFailure: { at: toTimestamp(NOW_MS + 86_400_000) } };
  assert.match(stepsOf({ run }).join(), /^create/);
});

test("fails after its active deadline", () => {
  const startedAt = toTimestamp(NOW_MS - 60_000);
  const given = (seconds: number, pods: readonly PodEntry[] = []) => ({
    config: { activeDeadlineSeconds: BigInt(seconds) },
    run: { startedAt },
    pods,
  });
  assert.deepEqual(stepsOf(given(60, [pod("a")])), [
    "write-status was not complete after its active deadline of 60 s",
  ]);
  assert.deepEqual(stepsOf(given(61, [pod("a")])), []);
  assert.equal(nextJobEvaluationMs(inputOf(given(61, [pod("a")]))), NOW_MS + 1_000);
});

test("stops the running pods of a finished job, and removes the job after its TTL", () => {
  const config = { ttlSecondsAfterFinished: 30n };
  const run = { condition: "Failed", reason: "DeadlineExceeded", finishedAt: toTimestamp(NOW_MS - 29_000) };
  const pods = [pod("a", { status: RUNNING }), counted("b", "failed")];
  assert.deepEqual(stepsOf({ config, run, pods }), ["stop-pod a its job has failed: DeadlineExceeded"]);
  assert.equal(nextJobEvaluationMs(inputOf({ config, run, pods })), NOW_MS + 1_000);
  const later = { ...run, finishedAt: toTimestamp(NOW_MS - 30_000) };
  assert.deepEqual(stepsOf({ config, run: later, pods }), ["remove-job its time to live of 30 s is over"]);
  assert.equal(nextJobEvaluationMs(inputOf({ run })), undefined, "without one it stays");
});

test("removes a job with a TTL if the clock was set back after it finished", () => {
  const config = { ttlSecondsAfterFinished: 30n };
  const endedIn = (ms: number) => ({
    config,
    run: { condition: "Complete", finishedAt: toTimestamp(NOW_MS + ms) },
    pods: [],
  });
  assert.deepEqual(stepsOf(endedIn(3_600_000)), ["remove-job its time to live of 30 s is over"]);
  assert.deepEqual(stepsOf(endedIn(5_000)), [], "a small step only delays it");
});

test("keeps the newest ended pods for their logs", () => {
  const pods = Array.from({ length: 53 }, (_, index) =>
    counted(`p${index}`, "succeeded", { observedAtMs: index }),
  );
  const failed = Array.from({ length: 50 }, (_, index) =>
    counted(`f${index}`, "failed", { observedAtMs: index }),
  );
  const run = { succeeded: 53 };
  assert.deepEqual(stepsOf({ config: { completions: 54 }, run, pods: [...pods, ...failed] }), [
    ...["p2", "p1", "p0"].map((name) => `stop-pod ${name} it has ended, and 50 newer ones are kept`),
    "create-pod",
  ]);
});

test("stops all pods of a deleted job, and removes its record after the last", () => {
  const pods = [pod("a"), counted("b", "succeeded"), pod("c", { stopping: true })];
  const why = "its job was deleted";
  assert.deepEqual(stepsOf({ deleting: true, run: {}, pods }), [`stop-pod a ${why}`, `stop-pod b ${why}`]);
  assert.deepEqual(stepsOf({ deleting: true, run: {} }), ["forget-resource"]);
});

type Case = readonly [
  what: string,
  config: NonNullable<Given["config"]>,
  run: Given["run"],
  pods: readonly PodEntry[],
  expected: readonly string[],
];

test("work queue: completes without waiting for a pod on a lost node", () => {
  const queue = { config: { parallelism: 2 }, run: { succeeded: 1 } };
  const stopping = (node: string) => [counted("a", "succeeded"), pod("b", { node, stopping: true })];
  assert.deepEqual(stepsOf({ ...queue, pods: stopping("n1") }), []);
  assert.deepEqual(stepsOf({ ...queue, pods: stopping("lost") }), ["write-status 1 pods succeeded"]);
});

interface Given {
  readonly config?: Parameters<typeof JobSpec.fromPartial>[0]["jobConfig"];
  /** The job's status. Undefined: the job has not begun. */
  readonly run?: Parameters<typeof JobStatus.fromPartial>[0] | undefined;
  readonly pods?: readonly PodEntry[];
  readonly held?: boolean;
  readonly deleting?: boolean;
}

function inputOf({ config = {}, run, pods = [], held = false, deleting = false }: Given): JobInput {
  const fields: ResourceFields = { spec: { jobConfig: config }, deleting };
  const resource = aJobEntry(fields);
  const job = jobOf(resource.record);
  assert.ok(job);
  const inRun = pods.map((entry) => {
    const mark = entry.record.job;
    if (mark?.run !== "this") return entry;
    return { ...entry, record: { ...entry.record, job: { ...mark, run: job.run } } };
  });
  return {
    resource,
    job,
    status: run && JobStatus.fromPartial({ run: job.run, startedAt: toTimestamp(NOW_MS), ...run }),
    pods: inRun,
    nodeExists: (name) => name !== "gone",
    nodeReady: (name) => name === "n1",
    held,
    nowMs: NOW_MS,
  };
}

function stepsOf(given: Given): string[] {
  return planJob(inputOf(given)).map(describeStep);
}

function describeStep(step: JobStep): string {
  switch (step.type) {
    case "count-pods":
      return `count-pods ${step.pods.map(({ record }) => record.name).join(" ")}`;
    case "stop-pod":
      return `stop-pod ${step.pod.record.name} ${step.why}`;
    case "relabel-pod":
      return `relabel-pod ${step.pod.record.name}`;
    case "forget-pod":
      return `forget-pod ${step.pod.record.name}`;
    case "create-pod":
      return step.index === undefined ? "create-pod" : `create-pod ${step.index}`;
    case "write-status":
    case "remove-job":
      return `${step.type} ${step.why}`;
    case "forget-resource":
      return step.type;
    default:
      return step satisfies never;
  }
}

function pod(
  name: string,
  { run = "this", ...fields }: PodFields & { readonly run?: string } = {},
): PodEntry {
  const index = fields.job?.index;
  const labels = {
    "batch.kubernetes.io/job-name": "migrate",
    ...(index !== undefined && { "batch.kubernetes.io/job-completion-index": String(index) }),
  };
  return aPod({ name, kind: "job", workload: "migrate", job: { run }, labels, ...fields });
}

function indexed(name: string, index: number): PodEntry {
  return pod(name, { job: { run: "this", index } });
}

function counted(name: string, as: string, fields: PodFields = {}): PodEntry {
  const status = as === "failed" ? CRASHED : SUCCEEDED;
  return pod(name, { status, job: { run: "this", counted: as }, ...fields });
}

function restarted(times: number): NonNullable<PodFields["status"]> {
  const lastTermination = { exitCode: 4, reason: "Error", finishedAt: toTimestamp(5) };
  return {
    ...RUNNING,
    containers: [
      { name: "main", restartCount: times, state: { $case: "running", value: {} }, lastTermination },
    ],
  };
}
