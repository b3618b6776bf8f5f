import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { JobSpec } from "@forage/proto/forest/v1/forage";
import { toEpochMs } from "./timestamp.ts";

/** A cron job for its reconciler, with Kubernetes' defaults for missing settings. */
export interface CronJob {
  readonly namespace: string;
  readonly name: string;
  readonly schedule: string;
  /** The IANA name of the time zone. */
  readonly timeZone: string;
  /**
   * The identity of the schedule. It changes with the schedule, and when the cron job is deleted and applied again: no run
   * is due from before.
   */
  readonly scheduleId: string;
  readonly concurrency: "Allow" | "Forbid" | "Replace";
  readonly suspended: boolean;
  /** The longest delay of a run's start. Undefined: unlimited. */
  readonly startingDeadlineMs: number | undefined;
  readonly keptSucceeded: number;
  readonly keptFailed: number;
  /** The specification of each run. */
  readonly job: JobSpec;
}

/** Kubernetes' defaults, which 0 in the API stands for. */
const DEFAULT_KEPT_SUCCEEDED = 3;
const DEFAULT_KEPT_FAILED = 1;

/** Returns the cron job of a resource. Undefined if the resource isn't one. */
export function cronJobOf(record: ResourceRecord): CronJob | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "cronJob") return undefined;
  const { schedule, container, volumes, jobConfig, podConfig, startingDeadlineSeconds } = spec.value;
  const timeZone = spec.value.timezone || "UTC";
  const policy = spec.value.concurrencyPolicy;
  return {
    namespace: record.namespace,
    name: record.name,
    schedule,
    timeZone,
    scheduleId: `${schedule} ${timeZone} ${toEpochMs(record.createdAt) ?? 0}`,
    concurrency: policy === "Forbid" || policy === "Replace" ? policy : "Allow",
    suspended: spec.value.suspend,
    startingDeadlineMs: startingDeadlineSeconds === 0n ? undefined : Number(startingDeadlineSeconds) * 1000,
    keptSucceeded: spec.value.successfulJobsHistoryLimit || DEFAULT_KEPT_SUCCEEDED,
    keptFailed: spec.value.failedJobsHistoryLimit || DEFAULT_KEPT_FAILED,
    job: { container, volumes, jobConfig, podConfig },
  };
}
