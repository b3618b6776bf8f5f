import { JobStatus } from "@forage/proto/forage/store/v1/store";
import type { Job } from "../../model/job.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { formatIndexes, parseIndexes } from "./indexes.ts";
import { endOf, failedRunsOf, failureOf } from "./pod-state.ts";

/** The way in which a pod counts in its job's status. "surplus": the pod succeeded after all completions were counted. */
export type CountedAs = "succeeded" | "failed" | "surplus";

export interface CountedPod {
  readonly pod: PodEntry;
  readonly as: CountedAs;
}

/** Returns the status of a new run of the job. */
export function newStatus(job: Job, nowMs: number): JobStatus {
  return JobStatus.fromPartial({ run: job.run, startedAt: toTimestamp(nowMs) });
}

/**
 * Returns the status with these pods counted, and the way in which each counts. The pods have ended and have not been
 * counted before. No index counts twice, and no more pods count than the job needs. Pure.
 */
export function countPods(
  job: Job,
  before: JobStatus,
  pods: readonly PodEntry[],
): { readonly status: JobStatus; readonly counted: readonly CountedPod[] } {
  const done = parseIndexes(before.completedIndexes);
  const status = { ...before };
  const counted: CountedPod[] = [];
  for (const pod of [...pods].sort((a, b) => (a.observedAtMs ?? 0) - (b.observedAtMs ?? 0))) {
    const as = countOne(job, status, done, pod);
    counted.push({ pod, as });
  }
  status.completedIndexes = formatIndexes(done);
  return { status, counted };
}

function countOne(job: Job, status: JobStatus, done: Set<number>, pod: PodEntry): CountedAs {
  const end = endOf(pod);
  status.failed += failedRunsOf(pod) + (end === "failed" ? 1 : 0);
  const failure = failureOf(pod);
  if (failure !== undefined && isNewer(failure, status)) status.lastFailure = failure;
  if (end === "failed") {
    status.failuresInARow++;
    return "failed";
  }
  if (!isNeeded(job, status, done, pod)) return "surplus";
  const index = pod.record.job?.index;
  if (job.indexed && index !== undefined) done.add(index);
  status.succeeded++;
  status.failuresInARow = 0;
  return "succeeded";
}

function isNeeded(job: Job, status: JobStatus, done: ReadonlySet<number>, { record }: PodEntry): boolean {
  if (job.completions === undefined) return true;
  if (status.succeeded >= job.completions) return false;
  if (!job.indexed) return true;
  const index = record.job?.index;
  return index !== undefined && index < job.completions && !done.has(index);
}

function isNewer({ at }: { readonly at: JobStatus["startedAt"] }, { lastFailure }: JobStatus): boolean {
  return (toEpochMs(at) ?? 0) >= (toEpochMs(lastFailure?.at) ?? 0);
}
