import type { CronJobSpec } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { cronScheduleProblem } from "../syntax/cron-schedule.ts";
import { rangeProblem, secondsProblem } from "../syntax/numbers.ts";
import { choiceProblem } from "../syntax/text.ts";
import { timeZoneProblem } from "../syntax/time-zone.ts";
import { validateRun } from "./job.ts";

/** The limit of kept runs, because each is a job with its pods in the store. */
const MAX_HISTORY = 1_000;

export function validateCronJob(spec: CronJobSpec, field: Field): void {
  validateRun(spec, field);
  field.at("schedule").check(cronScheduleProblem(spec.schedule));
  field.at("timezone").check(timeZoneProblem(spec.timezone));
  field.at("concurrency_policy").check(choiceProblem(spec.concurrencyPolicy, ["Allow", "Forbid", "Replace"]));
  const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = spec;
  field.at("successful_jobs_history_limit").check(rangeProblem(successfulJobsHistoryLimit, 0, MAX_HISTORY));
  field.at("failed_jobs_history_limit").check(rangeProblem(failedJobsHistoryLimit, 0, MAX_HISTORY));
  field.at("starting_deadline_seconds").check(secondsProblem(spec.startingDeadlineSeconds));
}
