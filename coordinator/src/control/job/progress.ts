import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { type JobStatus, RolloutReason } from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { Job } from "../../model/job.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { ProgressInput, ResourceProgress } from "../rollout/progress-input.ts";
import { describeWaiting, failureOf } from "../workload/pod-failure.ts";
import { failuresOf } from "./plan.ts";
import { endOf } from "./pod-state.ts";
import type { JobProgressInput } from "./progress-input.ts";

type Progress = Pick<ResourceProgress, "status" | "message" | "reason">;

/**
 * Returns the job's progress for its rollout. Once a pod has run, only the job's own limits make it fail; before that the
 * limits of all rollouts apply. Pure.
 */
export function progressOfJob(input: ProgressInput, { job, status, waitsFor }: JobProgressInput): Progress {
  const run = status?.run === job.run ? status : undefined;
  if (run?.condition === "Complete") return at(RolloutStatus.SUCCEEDED, run.message);
  if (run?.condition === "Failed") {
    const reason = run.reason === "DeadlineExceeded" ? RolloutReason.DEADLINE : RolloutReason.CRASH;
    return at(RolloutStatus.FAILED, run.message, reason);
  }
  if (run === undefined) {
    const left = input.pods.length;
    const why =
      left === 0
        ? waitsFor
        : `waits until ${left === 1 ? "a pod" : `${left} pods`} of the run before it have stopped`;
    return at(RolloutStatus.PENDING, why);
  }
  const pods = input.pods.filter((pod) => isOpen(pod, run) && endOf(pod) === undefined);
  const counts = countsOf(job, run, pods);
  const hasRun =
    run.succeeded + run.failed > 0 || pods.some(({ status: s }) => s?.phase === PodPhase.RUNNING);
  const failure = hasRun ? undefined : hopeless(pods, input);
  if (failure !== undefined) return at(RolloutStatus.FAILED, `${counts}; ${failure.message}`, failure.reason);
  const waiting = describeWaiting(pods, input);
  const message = waiting === "" ? counts : `${counts}; ${waiting}`;
  if (!hasRun && input.nowMs - input.startedMs >= input.limits.deadlineMs) {
    const seconds = Math.round(input.limits.deadlineMs / 1000);
    return at(
      RolloutStatus.FAILED,
      `no pod has started within the progress deadline of ${seconds} s; ${message}`,
      RolloutReason.DEADLINE,
    );
  }
  return at(RolloutStatus.IN_PROGRESS, message);
}

function at(
  status: RolloutStatus,
  message: string,
  reason: RolloutReason = RolloutReason.UNSPECIFIED,
): Progress {
  return { status, message, reason };
}

function isOpen({ record }: PodEntry, run: JobStatus): boolean {
  return record.job?.run === run.run && record.job.counted === "" && record.stoppingSince === undefined;
}

function countsOf(job: Job, run: JobStatus, pods: readonly PodEntry[]): string {
  const done = job.completions === undefined ? `${run.succeeded}` : `${run.succeeded}/${job.completions}`;
  const failed = failuresOf(run, pods);
  return [`${done} completed`, `${pods.length} active`, ...(failed > 0 ? [`${failed} failed`] : [])].join(
    ", ",
  );
}

/** Returns the reason why the job can't continue. Failing containers count only toward the job's own limit. */
function hopeless(pods: readonly PodEntry[], input: ProgressInput) {
  const failure = failureOf(pods, input);
  const isHopeless =
    failure?.reason === RolloutReason.UNSCHEDULABLE || failure?.reason === RolloutReason.IMAGE;
  return isHopeless ? failure : undefined;
}
