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

test("a new schedule begins when it was applied: nothing is due from before", () => {
  assert.deepEqual(stepsOf({ status: undefined }), ["write-status a new schedule"]);
  assert.deepEqual(stepsOf({ status: { schedule: "another" } }), ["write-status a new schedule"]);
  const [step] = planCron(inputOf({ status: undefined }));
  assert.deepEqual(step?.type === "write-status" && step.status.decidedUntil, toTimestamp(noon - HOUR));
});

for (const [what, given, expected] of [
  [
    "the newest time that is due is started",
    {},
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  ["not before its time", { nowMs: noon - 1 }, []],
  ["once", { decidedMs: noon }, []],
  [
    "after a downtime one late run, and the others are reported",
    { nowMs: noon + 30_000, decidedMs: noon - 5 * HOUR },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z; 4 before it were missed`],
  ],
  [
    "a time that is too long ago is missed",
    { nowMs: noon + 61_000, spec: { startingDeadlineSeconds: 60n } },
    ["miss-runs the run of 2026-02-01T12:00:00.000Z was not started within 60 s"],
  ],
  [
    "one that isn't is started",
    { nowMs: noon + 60_000, spec: { startingDeadlineSeconds: 60n } },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "Allow starts beside another",
    { runs: [run("a")] },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "not while 100 runs go on",
    { runs: Array.from({ length: 100 }, (_, index) => run(`a${index}`)) },
    ["skip-run the run of 2026-02-01T12:00:00.000Z is not started: 100 runs still go on, which is the most"],
  ],
  [
    "while 99 go on",
    { runs: Array.from({ length: 99 }, (_, index) => run(`a${index}`)) },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "not beyond the quota of the namespace",
    { quotaRefusal: (name: string) => `no room for ${name}` },
    [`skip-run the run of 2026-02-01T12:00:00.000Z is not started: no room for ${noonName}`],
  ],
  [
    "Forbid doesn't",
    { runs: [run("a")], spec: { concurrencyPolicy: "Forbid" } },
    ["skip-run the run of 2026-02-01T12:00:00.000Z is not started: a still goes on"],
  ],
  [
    "Forbid starts after one that has ended",
    { runs: [run("a", "Complete")], spec: { concurrencyPolicy: "Forbid" }, doneMs: noon - 1 },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "Replace stops what runs",
    { runs: [run("a")], spec: { concurrencyPolicy: "Replace" } },
    ["remove-run a the run of 2026-02-01T12:00:00.000Z replaces it", "write-status what runs is replaced"],
  ],
  [
    "and waits until it has stopped",
    {
      runs: [run("a", "", { deleting: true, stopping: true })],
      spec: { concurrencyPolicy: "Replace" },
      replacingMs: noon,
    },
    [],
  ],
  [
    "but not for unreachable nodes",
    { runs: [run("a", "", { deleting: true })], spec: { concurrencyPolicy: "Replace" }, replacingMs: noon },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "however long that takes",
    {
      nowMs: noon + 120_000,
      spec: { concurrencyPolicy: "Replace", startingDeadlineSeconds: 10n },
      replacingMs: noon,
    },
    [`start-run ${noonName} it was due at 2026-02-01T12:00:00.000Z`],
  ],
  [
    "a job of the same name is left alone",
    { taken: noonName },
    [`skip-run the run of 2026-02-01T12:00:00.000Z is not started: there is a job "${noonName}"`],
  ],
  ["nothing starts while it is suspended", { spec: { suspend: true }, suspended: true }, []],
  ["that it is suspended is remembered", { spec: { suspend: true } }, ["write-status suspended"]],
  ["what was due meanwhile is not caught up", { suspended: true }, ["write-status resumed"]],
  [
    "a clock that was wrong by hours",
    { decidedMs: noon + 2 * HOUR },
    ["write-status the clock was set back"],
  ],
  ["a clock that was corrected by minutes", { decidedMs: noon + HOUR / 2 }, []],
  [
    "three good runs and a failed one are kept, the newest",
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
  [
    "when one last ended well is remembered",
    { runs: [run("a", "Complete")] },
    ["write-status a run is complete"],
  ],
  [
    "a deleted one takes its runs along",
    { deleting: true, runs: [run("a"), run("b", "", { deleting: true })] },
    ["remove-run a its cron job was deleted"],
  ],
  ["and goes after the last", { deleting: true }, ["forget-resource"]],
] as readonly (readonly [string, Given, readonly string[]])[]) {
  test(`runs: ${what}`, () => assert.deepEqual(stepsOf(given), expected));
}

test("it looks again when the next time comes, and not while it is suspended", () => {
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
