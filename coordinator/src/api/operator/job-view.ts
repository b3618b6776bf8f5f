import type { JobState } from "@forage/proto/forage/operator/v1/operator";
import { nextPodMs } from "../../control/job/back-off.ts";
import { jobStatusOf } from "../../control/job/job-input.ts";
import { failuresOf } from "../../control/job/plan.ts";
import { endOf } from "../../control/job/pod-state.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/** Returns the progress of a job. Undefined if the resource is no job. */
export function jobView(state: ClusterView, { record }: ResourceEntry, nowMs: number): JobState | undefined {
  const stored = jobStatusOf(state, record.namespace, record.name);
  const job = state.jobs.of(record, stored?.run);
  if (job === undefined) return undefined;
  const status = stored?.run === job.run ? stored : undefined;
  const pods = state.podsOfWorkload(workloadKey(job.namespace, "job", job.name));
  const open = pods.filter(
    (pod) =>
      pod.record.job?.run === job.run && pod.record.stoppingSince === undefined && endOf(pod) === undefined,
  );
  const retryMs = status === undefined || status.condition !== "" ? nowMs : nextPodMs(status, nowMs);
  return {
    completions: job.completions ?? 0,
    parallelism: job.parallelism,
    active: open.length,
    ready: open.filter(({ status: s }) => s?.ready).length,
    succeeded: status?.succeeded ?? 0,
    failed: status === undefined ? 0 : failuresOf(status, pods),
    backoffLimit: job.backoffLimit,
    completedIndexes: status?.completedIndexes ?? "",
    condition: status?.condition ?? "",
    reason: status?.reason ?? "",
    message: status?.message ?? "",
    startedAt: status?.startedAt,
    finishedAt: status?.finishedAt,
    lastFailure: status?.lastFailure,
    retryAt: retryMs > nowMs ? toTimestamp(retryMs) : undefined,
  };
}
