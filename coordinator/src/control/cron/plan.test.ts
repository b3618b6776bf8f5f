import assert from "node:assert/strict";
import { test } from "node:test";
import { CronJobStatus, JobStatus } from "@forage/proto/forage/store/v1/store";
import type { CronJobSpec } from "@forage/proto/forest/v1/forage";
import { aCronJobEntry, aJobEntry } from "../../../test/support/entries.ts";
import { cronJobOf } from "../../model/cron-job.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { type CronInput, type CronRun, type CronStep, nextCronEvaluationMs, planCron } from "./plan.ts";
import { scheduleOf } from "./schedule.ts";

/** A Sunday. */
const noon = Date.parse("2026-02-01T12:00:00Z");
const HOUR = 3_600_000;
const noonName = `nightly-${noon / 60_000}`;

test("a new schedule is due only after it was applied", () => {
  assert.deepEqual(stepsOf({ status: undefined }), ["write-status a new schedule"]);
  assert.deepEqual(stepsOf({ status: { schedule: "another" } }), ["write-status a new schedule"]);
  const [step] = planCron(inputOf({ status: undefined }));
  assert.deepEqual(step?.type === "write-status" && step.status.decidedUntil, toTimestamp(noon - HOUR));
});

for (const [what, given, expected] of [
  ["starts the newest due run", {}, [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`]],
  ["starts no run before it is due", { nowMs: noon - 1 }, []],
  ["starts no run twice", { decidedMs: noon }, []],
  [
    "starts one run after a downtime, and reports the missed ones",
    { nowMs: noon + 30_000, decidedMs: noon - 5 * HOUR },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z; 4 before it were missed`],
  ],
  [
    "misses a run after its starting deadline",
    { nowMs: noon + 61_000, spec: { startingDeadlineSeconds: 60n } },
    ["miss-runs the run of 2026-02-01T12:00:00.000Z was not started within 60 s"],
  ],
  [
    "starts a run at its starting deadline",
    { nowMs: noon + 60_000, spec: { startingDeadlineSeconds: 60n } },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "Allow: starts a run while another is active",
    { runs: [run("a")] },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "starts no run while 100 are active",
    { runs: Array.from({ length: 100 }, (_, index) => run(`a${index}`)) },
    ["skip-run the run of 2026-02-01T12:00:00.000Z is not started: 100 runs are active, which is the limit"],
  ],
  [
    "starts a run while 99 are active",
    { runs: Array.from({ length: 99 }, (_, index) => run(`a${index}`)) },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "starts no run beyond the namespace's quota",
    { quotaRefusal: (name: string) => `no room for ${name}` },
    [`skip-run the run of 2026-02-01T12:00:00.000Z is not started: no room for ${noonName}`],
  ],
  [
    "Forbid: starts no run while another is active",
    { runs: [run("a")], spec: { concurrencyPolicy: "Forbid" } },
    ["skip-run the run of 2026-02-01T12:00:00.000Z is not started: a is still active"],
  ],
  [
    "Forbid: starts a run after the previous one has ended",
    { runs: [run("a", "Complete")], spec: { concurrencyPolicy: "Forbid" }, doneMs: noon - 1 },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "Replace: stops the active run",
    { runs: [run("a")], spec: { concurrencyPolicy: "Replace" } },
    [
      "remove-run a the run of 2026-02-01T12:00:00.000Z replaces it",
      "write-status the active run is replaced",
    ],
  ],
  [
    "Replace: waits until the pods of the previous run have stopped",
    {
      runs: [run("a", "", { deleting: true, stopping: true })],
      spec: { concurrencyPolicy: "Replace" },
      replacingMs: noon,
    },
    [],
  ],
  [
    "Replace: doesn't wait for pods on unreachable nodes",
    { runs: [run("a", "", { deleting: true })], spec: { concurrencyPolicy: "Replace" }, replacingMs: noon },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "Replace: starts the run after its starting deadline if the previous one took long to stop",
    {
      nowMs: noon + 120_000,
      spec: { concurrencyPolicy: "Replace", startingDeadlineSeconds: 10n },
      replacingMs: noon,
    },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "doesn't touch another job with the run's name",
    { taken: noonName },
    [`skip-run the run of 2026-02-01T12:00:00.000Z is not started: another job has the name "${noonName}"`],
  ],
  ["starts no run while it is suspended", { spec: { suspend: true }, suspended: true }, []],
  ["records that it is suspended", { spec: { suspend: true } }, ["write-status suspended"]],
  ["starts no run that was due while it was suspended", { suspended: true }, ["write-status resumed"]],
  [
    "forgets decisions made by a clock that was hours ahead",
    { decidedMs: noon + 2 * HOUR },
    ["write-status the clock was set back"],
  ],
  ["keeps decisions when the clock is set back by minutes", { decidedMs: noon + HOUR / 2 }, []],
  [
    "keeps the newest three successful runs and the newest failed one",
    {
      decidedMs: noon,
      doneMs: noon,
      runs: [
        ...[1, 2, 3, 4].map((n) => run(`good${n}`, "Complete", { finishedMs: noon - n })),
        ...[1, 2].map((n) => run(`bad${n}`, "Failed", { finishedMs: noon - n })),
        run("open"),
      ],
    },
    ["remove-run good4 3 newer ones are kept", "remove-run bad2 1 newer ones are kept"],
  ],
  ["records when a run last succeeded", { runs: [run("a", "Complete")] }, ["write-status a run is complete"]],
  [
    "removes the runs of a deleted cron job",
    { deleting: true, runs: [run("a"), run("b", "", { deleting: true })] },
    ["remove-run a its cron job was deleted"],
  ],
  ["removes the record of a deleted cron job after its last run", { deleting: true }, ["forget-resource"]],
] as readonly (readonly [string, Given, readonly string[]])[]) {
  test(`runs: ${what}`, () => assert.deepEqual(stepsOf(given), expected));
}

test("requests the next evaluation for the next due time, and none while suspended", () => {
  assert.equal(nextCronEvaluationMs(inputOf({ nowMs: noon + 1, decidedMs: noon })), noon + HOUR);
  assert.equal(nextCronEvaluationMs(inputOf({ spec: { suspend: true }, suspended: true })), undefined);
});

interface Given {
  readonly spec?: Parameters<typeof CronJobSpec.fromPartial>[0];
  readonly status?: Parameters<typeof CronJobStatus.fromPartial>[0] | undefined;
  readonly nowMs?: number;
  readonly decidedMs?: number;
  readonly doneMs?: number;
  readonly replacingMs?: number;
  readonly suspended?: boolean;
  readonly runs?: readonly CronRun[];
  readonly taken?: string;
  readonly quotaRefusal?: (name: string) => string;
  readonly deleting?: boolean;
}

function inputOf(given: Given): CronInput {
  const { spec = {}, nowMs = noon, decidedMs = noon - HOUR, runs = [], taken = "", deleting = false } = given;
  const made = aCronJobEntry({ name: "nightly", spec: { schedule: "0 * * * *", ...spec }, deleting });
  const resource = { ...made, record: { ...made.record, updatedAt: toTimestamp(noon - HOUR) } };
  const cron = cronJobOf(resource.record);
  assert.ok(cron);
  const status = {
    schedule: cron.scheduleId,
    decidedUntil: toTimestamp(decidedMs),
    suspended: given.suspended ?? false,
    replacingFor: given.replacingMs === undefined ? undefined : toTimestamp(given.replacingMs),
    lastSuccessfulAt: given.doneMs === undefined ? undefined : toTimestamp(given.doneMs),
  };
  const shown = "status" in given ? given.status : status;
  return {
    resource,
    cron,
    schedule: scheduleOf(cron.schedule, cron.timeZone),
    status: shown && CronJobStatus.fromPartial(shown),
    runs,
    taken: (name) => name === taken,
    quotaRefusal: given.quotaRefusal,
    nowMs,
  };
}

function stepsOf(given: Given): string[] {
  return planCron(inputOf(given)).map(describeStep);
}

function describeStep(step: CronStep): string {
  switch (step.type) {
    case "start-run":
      return `start-run ${step.name} ${step.why}`;
    case "remove-run":
      return `remove-run ${step.run.entry.record.name} ${step.why}`;
    case "skip-run":
    case "miss-runs":
    case "write-status":
      return `${step.type} ${step.why}`;
    case "forget-resource":
      return step.type;
    default:
      return step satisfies never;
  }
}

function run(
  name: string,
  condition = "",
  fields: { readonly deleting?: boolean; readonly stopping?: boolean; readonly finishedMs?: number } = {},
): CronRun {
  const { deleting = false, stopping = false, finishedMs = noon - 1 } = fields;
  const finishedAt = condition === "" ? undefined : toTimestamp(finishedMs);
  return {
    entry: aJobEntry({ name, deleting }),
    status: JobStatus.fromPartial({ condition, finishedAt }),
    stopping,
  };
}
