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

test("a job that was just applied begins, and then gets its pods", () => {
  assert.deepEqual(stepsOf({ config: { completions: 3, parallelism: 2 } }), ["write-status it begins"]);
  const begun = { config: { completions: 3, parallelism: 2 }, run: {} };
  assert.deepEqual(stepsOf(begun), ["create-pod", "create-pod"]);
});

test("nothing begins while it is held", () => {
  assert.deepEqual(stepsOf({ held: true }), []);
  assert.deepEqual(stepsOf({ held: true, run: {} }), []);
});

for (const [what, config, run, pods, expected] of [
  ["one by default", {}, {}, [], ["create-pod"]],
  ["as many at a time as there are", { completions: 5, parallelism: 2 }, {}, [pod("a")], ["create-pod"]],
  [
    "no more than are left to do",
    { completions: 5, parallelism: 4 },
    { succeeded: 3 },
    [pod("a")],
    ["create-pod"],
  ],
  [
    "pods follow the labels of the request",
    {},
    {},
    [pod("a", { labels: { release: "1" } })],
    ["relabel-pod a"],
  ],
  ["none beside enough", { completions: 5, parallelism: 2 }, {}, [pod("a"), pod("b")], []],
  [
    "parallelism that shrank, those of least use first",
    { completions: 5, parallelism: 1 },
    {},
    [pod("a", { status: RUNNING }), pod("b", { node: "" })],
    ["stop-pod b more than are to run at a time"],
  ],
  [
    "the lowest free indexes",
    { completions: 5, parallelism: 3, completionMode: "Indexed" },
    { succeeded: 1, completedIndexes: "1" },
    [indexed("a", 0)],
    ["create-pod 2", "create-pod 3"],
  ],
  [
    "a pod whose index another has done",
    { completions: 2, parallelism: 2, completionMode: "Indexed" },
    { succeeded: 1, completedIndexes: "0" },
    [indexed("a", 0), indexed("b", 1)],
    ["stop-pod a its index has been done by another pod"],
  ],
  [
    "a place is kept while its pod stops on a node that is there",
    { completions: 2, parallelism: 1 },
    {},
    [pod("a", { stopping: true })],
    [],
  ],
  [
    "and given away when the node is lost",
    { completions: 2, parallelism: 1 },
    {},
    [pod("a", { stopping: true, node: "lost" })],
    ["create-pod"],
  ],
  ["a pod on a lost node keeps its place until it is to stop", {}, {}, [pod("a", { node: "lost" })], []],
  [
    "a pod that was stopped before it was placed",
    {},
    {},
    [pod("a", { stopping: true, node: "" })],
    ["forget-pod a", "create-pod"],
  ],
  ["a pod of a forgotten node", {}, {}, [pod("a", { node: "gone" })], ["forget-pod a", "create-pod"]],
  [
    "a pod that has ended is counted, and nothing else is done",
    { completions: 3 },
    {},
    [pod("a", { status: SUCCEEDED })],
    ["count-pods a"],
  ],
  ["also while it stops", {}, {}, [pod("a", { status: SUCCEEDED, stopping: true })], ["count-pods a"]],
  ["also on a lost node", {}, {}, [pod("a", { status: CRASHED, node: "lost" })], ["count-pods a"]],
  [
    "what was counted isn't counted again",
    {},
    { succeeded: 1 },
    [counted("a", "succeeded")],
    ["write-status 1/1 completed"],
  ],
  ["it is complete", { completions: 2 }, { succeeded: 2 }, [], ["write-status 2/2 completed"]],
  [
    "what was counted and runs again is stopped",
    { completions: 2 },
    { succeeded: 1 },
    [counted("a", "succeeded", { status: RUNNING })],
    ["stop-pod a its end has been counted", "create-pod"],
  ],
  ["a queue makes pods until one ends well", { parallelism: 3 }, {}, [pod("a"), pod("b")], ["create-pod"]],
  ["and then waits for the others", { parallelism: 3 }, { succeeded: 1 }, [pod("a"), pod("b")], []],
  [
    "and is complete after the last",
    { parallelism: 3 },
    { succeeded: 2 },
    [],
    ["write-status 2 pods ended well"],
  ],
  [
    "failures beyond the limit end it",
    { backoffLimit: 2 },
    { failed: 3, failuresInARow: 3 },
    [],
    ["write-status failed 3 times, with a limit of 2"],
  ],
  ["no more than the limit doesn't", { backoffLimit: 3 }, { failed: 3 }, [], ["create-pod"]],
  [
    "restarts in place count, and say why",
    { backoffLimit: 1 },
    {},
    [pod("a", { status: restarted(2) })],
    ["write-status failed twice, with a limit of 1; pod a: container main exited with code 4 (Error)"],
  ],
  ["restarts within the limit go on", { backoffLimit: 2 }, {}, [pod("a", { status: restarted(2) })], []],
  [
    "pods of an earlier run are stopped, and the new one waits for them",
    {},
    undefined,
    [pod("a", { run: "earlier" })],
    ["stop-pod a its job was changed and starts again"],
  ],
  ["also those that stop already", {}, undefined, [pod("a", { run: "earlier", stopping: true })], []],
  [
    "but not for those on a lost node",
    {},
    undefined,
    [pod("a", { run: "earlier", stopping: true, node: "lost" })],
    ["write-status it begins"],
  ],
] as readonly Case[]) {
  test(`pods: ${what}`, () => assert.deepEqual(stepsOf({ config, run, pods }), expected));
}

test("after failures the next pod waits: 10 s, doubled each time, 6 minutes at most", () => {
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

test("a failure that lies in the future, because the clock was set back, delays no pod until the clock has caught up", () => {
  const run = { failed: 1, failuresInARow: 1, lastFailure: { at: toTimestamp(NOW_MS + 86_400_000) } };
  assert.match(stepsOf({ run }).join(), /^create/);
});

test("it fails when its active deadline is over, with the last failure for a reason", () => {
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

test("a job that has ended stops what still runs, and goes after its time to live", () => {
  const config = { ttlSecondsAfterFinished: 30n };
  const run = { condition: "Failed", reason: "DeadlineExceeded", finishedAt: toTimestamp(NOW_MS - 29_000) };
  const pods = [pod("a", { status: RUNNING }), counted("b", "failed")];
  assert.deepEqual(stepsOf({ config, run, pods }), ["stop-pod a its job has failed: DeadlineExceeded"]);
  assert.equal(nextJobEvaluationMs(inputOf({ config, run, pods })), NOW_MS + 1_000);
  const later = { ...run, finishedAt: toTimestamp(NOW_MS - 30_000) };
  assert.deepEqual(stepsOf({ config, run: later, pods }), ["remove-job its time to live of 30 s is over"]);
  assert.equal(nextJobEvaluationMs(inputOf({ run })), undefined, "without one it stays");
});

test("a job with a time to live goes also when the clock was set back after its end", () => {
  const config = { ttlSecondsAfterFinished: 30n };
  const endedIn = (ms: number) => ({
    config,
    run: { condition: "Complete", finishedAt: toTimestamp(NOW_MS + ms) },
    pods: [],
  });
  assert.deepEqual(stepsOf(endedIn(3_600_000)), ["remove-job its time to live of 30 s is over"]);
  assert.deepEqual(stepsOf(endedIn(5_000)), [], "a small step only delays it");
});

test("the newest pods that have ended are kept for their logs", () => {
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

test("a deleted job stops all its pods and goes with the last", () => {
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

test("pods that share out their work don't wait for one that went with its node", () => {
  const queue = { config: { parallelism: 2 }, run: { succeeded: 1 } };
  const stopping = (node: string) => [counted("a", "succeeded"), pod("b", { node, stopping: true })];
  assert.deepEqual(stepsOf({ ...queue, pods: stopping("n1") }), []);
  assert.deepEqual(stepsOf({ ...queue, pods: stopping("lost") }), ["write-status 1 pods ended well"]);
});

interface Given {
  readonly config?: Parameters<typeof JobSpec.fromPartial>[0]["jobConfig"];
  /** Undefined: it has not begun. */
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
