import type {
  CronJobState,
  JobFailureState,
  JobState,
  Resource,
} from "@forage/proto/forage/operator/v1/operator";
import { formatAge } from "../duration.ts";
import type { Paint, Style } from "../output/paint.ts";
import { renderEntries } from "../output/sections.ts";
import type { Column } from "../output/table.ts";
import { age, dateTime, toMs, type WireTime } from "./timestamp.ts";

/** Returns the columns of resources of the kind job. */
export function jobColumns(nowMs: number, withNamespace: boolean): Column<Resource>[] {
  const namespace: Column<Resource> = { title: "NAMESPACE", value: (resource) => resource.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "NAME", value: ({ name }) => name },
    { title: "STATUS", value: jobStatus, style: jobStyle },
    { title: "COMPLETED", value: ({ job }) => (job === undefined ? "" : completions(job)), alignRight: true },
    { title: "ACTIVE", value: ({ job }) => String(job?.active ?? 0), alignRight: true },
    { title: "FAILED", value: ({ job }) => String(job?.failed ?? 0), alignRight: true },
    { title: "DURATION", value: ({ job }) => duration(job, nowMs), alignRight: true },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "OWNER", value: ({ owner }) => owner, whenFilled: true },
    { title: "MESSAGE", value: ({ job }) => job?.message ?? "", wide: true },
  ];
}

/** Returns the columns of resources of the kind cron_job. */
export function cronJobColumns(nowMs: number, withNamespace: boolean): Column<Resource>[] {
  const namespace: Column<Resource> = { title: "NAMESPACE", value: (resource) => resource.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "NAME", value: ({ name }) => name },
    { title: "SCHEDULE", value: scheduleText },
    { title: "SUSPENDED", value: ({ cronJob }) => (cronJob?.suspended ? "yes" : "no") },
    { title: "ACTIVE", value: ({ cronJob }) => String(cronJob?.active.length ?? 0), alignRight: true },
    { title: "LAST", value: ({ cronJob }) => age(cronJob?.lastScheduledAt, nowMs), alignRight: true },
    {
      title: "LAST SUCCESS",
      value: ({ cronJob }) => age(cronJob?.lastSuccessfulAt, nowMs),
      alignRight: true,
    },
    { title: "NEXT", value: ({ cronJob }) => dateTime(cronJob?.nextAt) },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
  ];
}

function scheduleText({ cronJob }: Resource): string {
  if (cronJob === undefined) return "";
  return cronJob.timezone === "" ? cronJob.schedule : `${cronJob.schedule} (${cronJob.timezone})`;
}

export function jobStatus({ job, deleting }: Resource): string {
  if (deleting) return "deleting";
  if (job?.startedAt === undefined) return "Waiting";
  return job.condition === "" ? "Running" : job.condition;
}

/** Returns completions such as `2/5`, or `2` for a work queue without a fixed number. */
export function completions({ succeeded, completions: desired }: JobState): string {
  return desired === 0 ? String(succeeded) : `${succeeded}/${desired}`;
}

export function jobStyle({ job, deleting }: Resource): Style {
  if (!deleting && job?.condition === "Complete") return "good";
  return !deleting && job?.condition === "Failed" ? "bad" : "busy";
}

/** Describes the state of a job; empty for other resources. */
export function describeJob(resource: Resource, nowMs: number, paint: Paint): string {
  const { job } = resource;
  if (job === undefined) return "";
  const { active, ready, failed, parallelism, lastFailure } = job;
  return renderEntries(
    [
      ["Status", [jobStatus(resource), job.reason].filter((word) => word !== "").join(", ")],
      ["Message", job.message],
      ["Completed", completions(job)],
      ["Indexes", job.completedIndexes],
      ["Active", `${active} (${ready} ready), at most ${parallelism} at a time`],
      ["Failed", `${failed}, at most ${job.backoffLimit}`],
      ["Next try", moment(job.retryAt)],
      ["Started", moment(job.startedAt)],
      ["Ended", moment(job.finishedAt)],
      ["Duration", duration(job, nowMs)],
      ["Last failure", lastFailure === undefined ? "" : failureText(lastFailure)],
    ],
    paint,
  );
}

/** Describes the state of a cron job; empty for other resources. */
export function describeCronJob(cron: CronJobState | undefined, paint: Paint): string {
  if (cron === undefined) return "";
  return renderEntries(
    [
      ["Schedule", `${cron.schedule} (${cron.timezone})`],
      ["Suspended", cron.suspended ? "yes" : ""],
      ["Next run", moment(cron.nextAt)],
      ["Last run", moment(cron.lastScheduledAt)],
      ["Last success", moment(cron.lastSuccessfulAt)],
      ["Running", cron.active.join(", ")],
    ],
    paint,
  );
}

function failureText({
  pod,
  node,
  container,
  exitCode,
  signal,
  reason,
  message,
  at,
}: JobFailureState): string {
  const how = signal > 0 ? `was killed by signal ${signal}` : `exited with code ${exitCode}`;
  const what =
    container === "" ? reason : `container ${container} ${how}${reason === "" ? "" : ` (${reason})`}`;
  const head = `pod ${pod}${node === "" ? "" : ` on ${node}`}, ${dateTime(at)}: ${what}`;
  return [head, message.trim()].filter((text) => text !== "").join("\n");
}

function moment(time: WireTime | undefined): string {
  return dateTime(time);
}

function duration(job: JobState | undefined, nowMs: number): string {
  if (job?.startedAt === undefined) return "";
  const untilMs = job.finishedAt === undefined ? nowMs : toMs(job.finishedAt);
  return formatAge(Math.max(0, untilMs - toMs(job.startedAt)));
}
