import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { JobSpec } from "@forage/proto/forest/v1/forage";
import { toEpochMs } from "./timestamp.ts";

/** A cron job as its reconciler sees it, with Kubernetes' defaults for what was left out. */
export interface CronJob {
  readonly namespace: string;
  readonly name: string;
  readonly schedule: string;
  /** IANA name. */
  readonly timeZone: string;
  /** Changes with the schedule, and when it is deleted and applied again: no run is due from before. */
  readonly scheduleId: string;
  readonly concurrency: "Allow" | "Forbid" | "Replace";
  readonly suspended: boolean;
  /** The largest delay of a run's start; undefined: unlimited. */
  readonly startingDeadlineMs: number | undefined;
  readonly keptSucceeded: number;
  readonly keptFailed: number;
  /** The specification of each run. */
  readonly job: JobSpec;
}

/** Kubernetes' defaults, for which the contract's 0 stands. */
const DEFAULT_KEPT_SUCCEEDED = 3;
const DEFAULT_KEPT_FAILED = 1;

/** Undefined when the resource isn't a cron job. */
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
