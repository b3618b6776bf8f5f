import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import type { Job } from "../../model/job.ts";
import type { Labels } from "../../model/labels.ts";
import { sameLabels } from "../../model/labels.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { TranslateTime } from "../workload/availability.ts";
import { nextPodMs } from "./back-off.ts";
import { newStatus } from "./count.ts";
import { parseIndexes } from "./indexes.ts";
import { labelsOf } from "./job-pod.ts";
import { endOf, failedRunsOf, failureOf, failureText } from "./pod-state.ts";

/** A step for one job. A dry run prints the same objects. */
export type JobStep =
  /** Counts ended pods: updates the job's status and the pods' records in one transaction. */
  | { readonly type: "count-pods"; readonly pods: readonly PodEntry[] }
  /** Begins or ends the run. */
  | { readonly type: "write-status"; readonly status: JobStatus; readonly why: string }
  | { readonly type: "create-pod"; readonly index: number | undefined; readonly why: string }
  | { readonly type: "stop-pod"; readonly pod: PodEntry; readonly why: string }
  | { readonly type: "relabel-pod"; readonly pod: PodEntry; readonly labels: Labels }
  /** Removes the record of a pod that never was on a node, or whose node has removed it. */
  | { readonly type: "forget-pod"; readonly pod: PodEntry; readonly why: string }
  /** Removes a job whose time to live after its end has passed. */
  | { readonly type: "remove-job"; readonly why: string }
  /** Deletes the record of a deleted job after its last pod is gone. */
  | { readonly type: "forget-resource" };

export interface JobInput {
  /** The job's resource. Undefined: its record is removed, but pods are left. */
  readonly resource: ResourceEntry | undefined;
  readonly job: Job | undefined;
  /** The job's status. It may be of an earlier run. */
  readonly status: JobStatus | undefined;
  readonly pods: readonly PodEntry[];
  readonly nodeExists: (name: string) => boolean;
  /** Reports whether the node is reachable, so that it will stop pods as ordered. */
  readonly nodeReady: (name: string) => boolean;
  /** Whether dependencies are unmet, so that no run begins. */
  readonly held: boolean;
  readonly nowMs: number;
  /** The current time minus the time for which this coordinator could act, in milliseconds since the epoch. Default: 0. */
  readonly upSinceMs?: number;
  /**
   * Moves a recorded time forward by the time in which the coordinator could not act. Default: all time counts.
   */
  readonly since?: TranslateTime;
}

/**
 * The time after a start of the coordinator before a job fails by its deadline, because agents may still report a
 * completion from before the deadline. Agents report as soon as they connect.
 */
const REPORTS_MS = 10_000;
/**
 * The number of ended pods whose records are kept for their logs: the newest this many that succeeded, and the newest this
 * many others.
 */
const KEPT_OF_EACH = 50;
/** The limit of pods created in one evaluation. The next evaluation continues at once. */
const MAX_CREATED_AT_ONCE = 200;

/**
 * Returns the next steps of the job. Counting is a step of its own, because all other decisions depend on the counts. Pure.
 */
export function planJob(input: JobInput): JobStep[] {
  const { resource, job, status } = input;
  if (resource === undefined || job === undefined || resource.record.deleting) return removal(input);
  const run = status?.run === job.run ? status : undefined;
  const uncounted = run === undefined ? [] : input.pods.filter((pod) => isUncounted(pod, job));
  if (uncounted.length > 0) return [{ type: "count-pods", pods: uncounted }];
  const gone = goneOf(input);
  const left = withoutGone(input.pods, gone);
  const steps: JobStep[] = [...gone, ...stopOthers(left, job)];
  if (run === undefined) return [...steps, ...begin(left, job, input)];
  const mine = left.filter((pod) => pod.record.job?.run === job.run);
  return [
    ...steps,
    ...stopOld(mine),
    ...(run.condition === "" ? goOn(mine, job, run, input) : rest(mine, job, run, input)),
  ];
}

/** Returns the time at which the next step may change without an event. Undefined: never. */
export function nextJobEvaluationMs(input: JobInput): number | undefined {
  const { job, status, resource, nowMs, since } = input;
  if (job === undefined || resource?.record.deleting || status?.run !== job.run) return undefined;
  const finishedMs = toEpochMs(status.finishedAt);
  if (finishedMs !== undefined) return job.ttlMs === undefined ? undefined : finishedMs + job.ttlMs;
  const times = [
    deadlineMs(job, status, input) ?? Number.NEGATIVE_INFINITY,
    nextPodMs(status, nowMs, since),
  ].filter((atMs) => atMs > nowMs);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Returns the number of failures so far: counted failed pods, and failed runs of containers in pods that continue. */
export function failuresOf(status: JobStatus, pods: readonly PodEntry[]): number {
  const open = pods.filter(({ record }) => record.job?.run === status.run && record.job.counted === "");
  return status.failed + open.reduce((sum, pod) => sum + failedRunsOf(pod), 0);
}

function isUncounted(pod: PodEntry, job: Job): boolean {
  const { job: mark } = pod.record;
  return mark?.run === job.run && mark.counted === "" && endOf(pod) !== undefined;
}

function isOpen({ record }: PodEntry): boolean {
  return record.job?.counted === "" && record.stoppingSince === undefined;
}

type ForgetStep = Extract<JobStep, { readonly type: "forget-pod" }>;

function goneOf(input: JobInput): ForgetStep[] {
  return input.pods.flatMap((pod) => {
    const why = whyGone(pod, input);
    return why === undefined ? [] : [{ type: "forget-pod", pod, why }];
  });
}

function withoutGone(pods: readonly PodEntry[], gone: readonly ForgetStep[]): PodEntry[] {
  const going = new Set(gone.map(({ pod }) => pod));
  return pods.filter((pod) => !going.has(pod));
}

function whyGone({ record, status }: PodEntry, { nodeExists }: JobInput): string | undefined {
  const { node, stoppingSince } = record;
  if (node === "") return stoppingSince === undefined ? undefined : "stopped before it was placed";
  if (!nodeExists(node)) return `node ${node} was removed`;
  return status?.phase === PodPhase.REMOVED ? "its node has removed it" : undefined;
}

function removal(input: JobInput): JobStep[] {
  const gone = goneOf(input);
  const left = withoutGone(input.pods, gone);
  const stops = left
    .filter(({ record }) => record.stoppingSince === undefined)
    .map((pod): JobStep => ({ type: "stop-pod", pod, why: "its job was deleted" }));
  const last: JobStep[] =
    input.resource !== undefined && left.length === 0 ? [{ type: "forget-resource" }] : [];
  return [...gone, ...stops, ...last];
}

/** Returns the stops of pods of earlier runs. */
function stopOthers(left: readonly PodEntry[], job: Job): JobStep[] {
  return left
    .filter(({ record }) => record.job?.run !== job.run && record.stoppingSince === undefined)
    .map((pod) => ({ type: "stop-pod", pod, why: "its job was changed and restarts" }));
}

/** Begins a run once the pods of the previous run have ended, except pods on unreachable nodes. */
function begin(left: readonly PodEntry[], job: Job, { held, nodeReady, nowMs }: JobInput): JobStep[] {
  const waits = left.some(({ record }) => record.node === "" || nodeReady(record.node));
  if (held || waits) return [];
  return [{ type: "write-status", status: newStatus(job, nowMs), why: "the job starts" }];
}

function stopOld(mine: readonly PodEntry[]): JobStep[] {
  const counted = mine.filter(
    ({ record }) => record.job?.counted !== "" && record.stoppingSince === undefined,
  );
  // The node has lost its state and started a counted pod again.
  const again = counted.filter((pod) => pod.status !== undefined && endOf(pod) === undefined);
  const kept = counted.filter((pod) => !again.includes(pod));
  const newestFirst = kept.sort((a, b) => (b.observedAtMs ?? 0) - (a.observedAtMs ?? 0));
  const failed = newestFirst.filter(({ record }) => record.job?.counted === "failed");
  const others = newestFirst.filter(({ record }) => record.job?.counted !== "failed");
  const old = [...failed.slice(KEPT_OF_EACH), ...others.slice(KEPT_OF_EACH)];
  return [
    ...again.map((pod): JobStep => ({ type: "stop-pod", pod, why: "its end was already counted" })),
    ...old.map(
      (pod): JobStep => ({
        type: "stop-pod",
        pod,
        why: `it has ended, and ${KEPT_OF_EACH} newer ones are kept`,
      }),
    ),
  ];
}

/** Returns the steps for a finished run. */
function rest(mine: readonly PodEntry[], job: Job, run: JobStatus, { nowMs }: JobInput): JobStep[] {
  const finishedMs = toEpochMs(run.finishedAt) ?? nowMs;
  if (job.ttlMs !== undefined && isOver(finishedMs, job.ttlMs, nowMs))
    return [{ type: "remove-job", why: `its time to live of ${job.ttlMs / 1000} s is over` }];
  const why = run.condition === "Complete" ? "its job is complete" : `its job has failed: ${run.reason}`;
  return mine.filter(isOpen).map((pod) => ({ type: "stop-pod", pod, why }));
}

/**
 * Reports whether a finished job has been kept for its time to live. True also if the end is further in the future than
 * that time: the clock was set back, and waiting for it to catch up could take days.
 */
function isOver(finishedMs: number, ttlMs: number, nowMs: number): boolean {
  return finishedMs + ttlMs <= nowMs || finishedMs > nowMs + ttlMs;
}

function goOn(mine: readonly PodEntry[], job: Job, run: JobStatus, input: JobInput): JobStep[] {
  const ended = outcomeOf(mine, job, run, input);
  if (ended !== undefined) return [ended];
  const open = mine.filter(isOpen);
  const leaving = mine.filter((pod) => isLeaving(pod, input));
  const surplus = surplusOf(open, job, run);
  const steps: JobStep[] = surplus.map(([pod, why]) => ({ type: "stop-pod", pod, why }));
  const going = new Set(surplus.map(([pod]) => pod));
  steps.push(
    ...relabel(
      open.filter((pod) => !going.has(pod)),
      job,
    ),
  );
  if (nextPodMs(run, input.nowMs, input.since) > input.nowMs || input.held) return steps;
  const missing = desiredPods(job, run, open.length) - open.length - leaving.length;
  const count = Math.min(MAX_CREATED_AT_ONCE, missing);
  if (count <= 0) return steps;
  const why = run.failed > 0 ? "retry" : "too few pods run";
  const indexes = job.indexed
    ? freeIndexes(job, run, [...open, ...leaving], count)
    : Array(count).fill(undefined);
  return [...steps, ...indexes.map((index): JobStep => ({ type: "create-pod", index, why }))];
}

/**
 * Reports whether a stopping pod still counts towards parallelism: its node is reachable and will stop it. No two pods run
 * at a time for one index.
 */
function isLeaving({ record }: PodEntry, { nodeReady }: JobInput): boolean {
  const stops = record.job?.counted === "" && record.stoppingSince !== undefined;
  return stops && (record.node === "" || nodeReady(record.node));
}

/** Returns the steps that update the labels of pods without replacing them. */
function relabel(pods: readonly PodEntry[], job: Job): JobStep[] {
  return pods.flatMap((pod): JobStep[] => {
    const labels = labelsOf(job, pod.record.job?.index);
    return sameLabels(pod.record.labels, labels) ? [] : [{ type: "relabel-pod", pod, labels }];
  });
}

/** Returns the number of pods that should run at the same time. */
function desiredPods(job: Job, run: JobStatus, open: number): number {
  if (job.completions === undefined)
    return run.succeeded > 0 ? Math.min(open, job.parallelism) : job.parallelism;
  return Math.min(job.parallelism, job.completions - run.succeeded);
}

function freeIndexes(job: Job, run: JobStatus, pods: readonly PodEntry[], count: number): number[] {
  const taken = parseIndexes(run.completedIndexes);
  for (const { record } of pods) if (record.job?.index !== undefined) taken.add(record.job.index);
  const free: number[] = [];
  for (let index = 0; index < (job.completions ?? 0) && free.length < count; index++) {
    if (!taken.has(index)) free.push(index);
  }
  return free;
}

/**
 * Returns the pods to stop with the reason: first pods whose index another pod has completed, then pods beyond the desired
 * number, the least useful first.
 */
function surplusOf(open: readonly PodEntry[], job: Job, run: JobStatus): (readonly [PodEntry, string])[] {
  const done = parseIndexes(run.completedIndexes);
  const idle = open.filter(({ record }) => record.job?.index !== undefined && done.has(record.job.index));
  const busy = open.filter((pod) => !idle.includes(pod));
  const over = Math.max(0, busy.length - desiredPods(job, run, busy.length));
  const byUse = [...busy].sort((a, b) => useOf(a) - useOf(b) || ageOf(b) - ageOf(a));
  return [
    ...idle.map((pod) => [pod, "another pod has completed its index"] as const),
    ...byUse.slice(0, over).map((pod) => [pod, "more pods than desired"] as const),
  ];
}

function useOf({ record, status }: PodEntry): number {
  if (record.node === "") return 0;
  return status?.ready ? 2 : 1;
}

function ageOf({ record }: PodEntry): number {
  return toEpochMs(record.createdAt) ?? 0;
}

/** Returns the outcome if the run ends now. Undefined: it continues. */
function outcomeOf(
  mine: readonly PodEntry[],
  job: Job,
  run: JobStatus,
  input: JobInput,
): Extract<JobStep, { readonly type: "write-status" }> | undefined {
  const { nowMs } = input;
  const end = (condition: string, reason: string, message: string, failure = run.lastFailure) => {
    const status: JobStatus = {
      ...run,
      condition,
      reason,
      message,
      failed: condition === "Failed" ? failures : run.failed,
      lastFailure: failure,
      finishedAt: toTimestamp(nowMs),
    };
    return { type: "write-status", status, why: message } as const;
  };
  const failures = failuresOf(run, mine);
  if (isComplete(mine, job, run, input)) return end("Complete", "CompletionsReached", completed(job, run));
  const failure = lastFailureOf(mine, run);
  const cause = failure === undefined ? "" : `; pod ${failure.pod}: ${failureText(failure)}`;
  if (failures > job.backoffLimit) {
    const times = ["", "once", "twice"][failures] ?? `${failures} times`;
    const text = `failed ${times}, with a limit of ${job.backoffLimit}${cause}`;
    return end("Failed", "BackoffLimitExceeded", text, failure);
  }
  if ((deadlineMs(job, run, input) ?? Number.POSITIVE_INFINITY) > nowMs) return undefined;
  const text = `was not complete after its active deadline of ${(job.activeDeadlineMs ?? 0) / 1000} s${cause}`;
  return end("Failed", "DeadlineExceeded", text, failure);
}

/**
 * Returns the time at which the run fails unless it is complete. Time without a coordinator counts, because pods continue
 * to run.
 */
function deadlineMs(
  { activeDeadlineMs }: Job,
  { startedAt }: JobStatus,
  { nowMs, upSinceMs = 0, since = (atMs) => atMs }: JobInput,
): number | undefined {
  if (activeDeadlineMs === undefined) return undefined;
  const startedMs = since(toEpochMs(startedAt) ?? nowMs);
  return Math.max(startedMs + activeDeadlineMs, upSinceMs + REPORTS_MS);
}

/** Reports whether the run is complete. The pods of a work queue all have to end, except pods on lost nodes. */
function isComplete(mine: readonly PodEntry[], job: Job, run: JobStatus, input: JobInput): boolean {
  if (job.completions !== undefined) return run.succeeded >= job.completions;
  return run.succeeded > 0 && !mine.some((pod) => isOpen(pod) || isLeaving(pod, input));
}

function completed(job: Job, { succeeded }: JobStatus): string {
  return job.completions === undefined
    ? `${succeeded} pods succeeded`
    : `${succeeded}/${job.completions} completed`;
}

/** Returns the last failure, including failures of running pods that are not counted yet. */
function lastFailureOf(mine: readonly PodEntry[], run: JobStatus): JobStatus["lastFailure"] {
  const open = mine.filter(({ record }) => record.job?.counted === "").flatMap((pod) => failureOf(pod) ?? []);
  const all = run.lastFailure === undefined ? open : [...open, run.lastFailure];
  return all.sort((a, b) => (toEpochMs(b.at) ?? 0) - (toEpochMs(a.at) ?? 0))[0];
}
