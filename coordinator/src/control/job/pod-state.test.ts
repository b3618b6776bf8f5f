import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { aPod, type PodFields } from "../../../test/support/entries.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { failedRunsOf, failureOf, failureText, usesNothing } from "./pod-state.ts";

const bad = { exitCode: 3, reason: "Error", message: "no table\n", finishedAt: toTimestamp(2_000) };
const good = { exitCode: 0, reason: "Completed", finishedAt: toTimestamp(3_000) };
const RUNNING = { $case: "running" as const, value: {} };
const WAITING = { $case: "waiting" as const, value: { reason: "CrashLoopBackOff" } };
const terminated = (value: typeof bad | typeof good) => ({ $case: "terminated" as const, value });
const TEXT = "container main exited with code 3 (Error); last lines: no table";

for (const [what, status, runs, failure] of [
  ["no status yet", undefined, 0, undefined],
  ["it runs", { containers: [{ name: "main", state: RUNNING }] }, 0, undefined],
  [
    "it runs again",
    { containers: [{ name: "main", state: RUNNING, restartCount: 1, lastTermination: bad }] },
    1,
    TEXT,
  ],
  [
    "a container waits for its restart",
    {
      containers: [
        { name: "main", state: WAITING, restartCount: 0, lastTermination: bad, terminations: [bad] },
      ],
    },
    1,
    TEXT,
  ],
  [
    "a restarting container counts its failure once",
    {
      containers: [
        { name: "main", state: WAITING, restartCount: 1, lastTermination: bad, terminations: [bad] },
      ],
    },
    1,
    TEXT,
  ],
  [
    "a container has more restarts than reported terminations",
    {
      containers: [
        { name: "main", state: RUNNING, restartCount: 9, lastTermination: bad, terminations: [bad, bad] },
      ],
    },
    9,
    TEXT,
  ],
  [
    "an init container that had succeeded runs again",
    { containers: [{ name: "seed", init: true, state: RUNNING, restartCount: 1, terminations: [good] }] },
    0,
    undefined,
  ],
  [
    "a container succeeded after a restart",
    {
      phase: PodPhase.SUCCEEDED,
      containers: [{ name: "main", state: terminated(good), restartCount: 1, lastTermination: bad }],
    },
    1,
    TEXT,
  ],
  [
    "it has ended badly",
    { phase: PodPhase.FAILED, containers: [{ name: "main", state: terminated(bad) }] },
    0,
    TEXT,
  ],
  [
    "its node has evicted it",
    {
      phase: PodPhase.FAILED,
      reason: "Evicted",
      message: "too much on disk",
      containers: [{ name: "main", state: RUNNING }],
    },
    0,
    "Evicted: too much on disk",
  ],
  [
    "an init container failed",
    {
      containers: [
        { name: "seed", init: true, state: WAITING, lastTermination: bad },
        { name: "main", state: WAITING },
      ],
    },
    1,
    TEXT.replace("main", "seed"),
  ],
] as readonly (readonly [string, PodFields["status"], number, string | undefined])[]) {
  test(`failures of a pod: ${what}`, () => {
    const pod = aPod(status === undefined ? {} : { status });
    const found = failureOf(pod);
    assert.equal(failedRunsOf(pod), runs);
    assert.equal(found && failureText(found), failure);
  });
}

const JOB = { run: "r", index: undefined, counted: "" };
const ENDED = { name: "main", state: terminated(good) };
const UNDER_WAY = { name: "main", state: RUNNING };

for (const [what, fields, expected] of [
  ["has no status", { job: JOB }, false],
  ["runs", { job: JOB, status: { phase: PodPhase.RUNNING, containers: [UNDER_WAY] } }, false],
  ["succeeded", { job: JOB, status: { phase: PodPhase.SUCCEEDED, containers: [ENDED] } }, true],
  ["failed", { job: JOB, status: { phase: PodPhase.FAILED, containers: [ENDED] } }, true],
  [
    "is evicted while a container runs",
    { job: JOB, status: { phase: PodPhase.FAILED, containers: [UNDER_WAY] } },
    false,
  ],
  [
    "stops after its containers ended",
    { job: JOB, status: { phase: PodPhase.STOPPING, containers: [ENDED] } },
    true,
  ],
  [
    "stops while a container runs",
    { job: JOB, status: { phase: PodPhase.STOPPING, containers: [ENDED, UNDER_WAY] } },
    false,
  ],
  [
    "stops while a container may be starting",
    { job: JOB, status: { phase: PodPhase.STOPPING, containers: [{ name: "main", state: WAITING }] } },
    false,
  ],
  ["stops and has reported no container", { job: JOB, status: { phase: PodPhase.STOPPING } }, false],
  ["is removed", { job: JOB, status: { phase: PodPhase.REMOVED } }, true],
  ["is a service's", { status: { phase: PodPhase.SUCCEEDED, containers: [ENDED] } }, false],
] as readonly (readonly [string, PodFields, boolean])[]) {
  test(`${expected ? "counts no resources" : "counts the requests"} of a pod that ${what}`, () => {
    assert.equal(usesNothing(aPod(fields)), expected);
  });
}
