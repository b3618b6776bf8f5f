import {
  AttemptState,
  type RevisionRecord,
  type RolloutAttempt,
  RolloutReason,
} from "@forage/proto/forage/store/v1/store";
import { isReady } from "../../endpoints/readiness.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import { isAvailable, reached, stableMsOf } from "./availability.ts";
import { describeWaiting, type Failure, failureOf, waitsForRegistry } from "./pod-failure.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import { describePrefetch, lastingFailure, waitsForImages } from "./prefetch-status.ts";
import type { RolloutState } from "./rollout-state.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

export interface RolloutContext {
  readonly rolloutState: RolloutState;
  /** The effective workload. */
  readonly workload: Workload;
  /** The pods that are not stopping and that this evaluation doesn't stop. */
  readonly staying: readonly PodEntry[];
  readonly stopping: readonly PodEntry[];
  /** Returns the pods of `staying` that have the workload's revision. Computed on first use. */
  readonly current: () => readonly PodEntry[];
  /** Returns the progress of image pulls. Computed on first use, because with many pods it takes most of the time. */
  readonly ahead: () => ImagesAhead;
}

type ImagesAhead = ReadonlyMap<string, ImagesOnNode>;

export type RolloutUpdate = WorkloadStep & { readonly type: "update-rollout" };

/** The factor for the progress deadline while a registry is unavailable, because that is not the revision's fault. */
const REGISTRY_PATIENCE = 6;
/** The limit of progress records per progress deadline. Otherwise each of many pods would cost a write. */
const NOTES_PER_DEADLINE = 10;

/** Returns the update of the rollout attempt if it progressed or ended. Undefined: neither. Pure. */
export function evaluateRollout(context: RolloutContext, input: WorkloadInput): RolloutUpdate | undefined {
  const { attempt, own, hold } = context.rolloutState;
  const { state } = attempt;
  if (state === AttemptState.SUCCEEDED || state === AttemptState.ROLLED_BACK) return undefined;
  if (isDone(context, input)) {
    if (attempt.rolledBackTo > 0) {
      const why = `rolled back to revision ${attempt.rolledBackTo}: ${attempt.message}`;
      return update(attempt, { state: AttemptState.ROLLED_BACK }, why);
    }
    const message = counts(context, input);
    const ended = { state: AttemptState.SUCCEEDED, message, reason: RolloutReason.UNSPECIFIED };
    // Without replicas, no pod has proved the revision.
    const proven = context.workload.replicas > 0;
    return update(attempt, ended, message, proven && !own?.good ? own : undefined);
  }
  if (state === AttemptState.FAILED || hold.type === "paused") return undefined;
  const failure = state === AttemptState.PROGRESSING ? attemptFailure(context, input) : undefined;
  if (failure !== undefined) return fail(context, input, failure);
  return (
    progress(context, input) ??
    (isLate(context, input) ? fail(context, input, lateness(context, input)) : undefined)
  );
}

/** Returns the times at which the rollout may progress or end without an event. */
export function rolloutUpdateTimesMs(context: RolloutContext, input: WorkloadInput): number[] {
  const { attempt, hold } = context.rolloutState;
  if (attempt.state !== AttemptState.PROGRESSING && attempt.state !== AttemptState.ROLLING_BACK) return [];
  if (hold.type === "paused") return [];
  const times = context.current().flatMap(({ record }) => {
    const waiting = waitingOf(record.uid, context, input);
    return waiting === undefined ? [] : [waiting.sinceMs + input.limits.placementMs];
  });
  const sinceMs = progressedMs(attempt, input);
  const deadlineMs = deadlineMsOf(context, input);
  times.push(
    sinceMs + deadlineMs / NOTES_PER_DEADLINE,
    sinceMs + deadlineMs,
    sinceMs + deadlineMs * REGISTRY_PATIENCE,
  );
  return times;
}

/** Reports whether all pods of a canary are available and it waits for its promotion. */
export function waitsForPromotion(context: RolloutContext, input: WorkloadInput): boolean {
  const { attempt, hold } = context.rolloutState;
  return hold.type === "canary" && Math.max(attempt.progress, availableOf(context, input)) >= hold.pods;
}

export function counts(context: RolloutContext, input: WorkloadInput): string {
  const ready = context.current().filter((pod) => isReady(pod, input.nodeReady)).length;
  return `${ready}/${context.workload.replicas} ready`;
}

function availableOf(context: RolloutContext, input: WorkloadInput): number {
  const stableMs = stableMsOf(context.workload, input);
  return context.current().filter((pod) => isAvailable(pod, stableMs, input)).length;
}

function isDone(context: RolloutContext, input: WorkloadInput): boolean {
  const { replicas } = context.workload;
  return context.staying.length === replicas && availableOf(context, input) === replicas;
}

function attemptFailure(context: RolloutContext, input: WorkloadInput): Failure | undefined {
  const failure = failureOf(context.current(), failureInput(context, input)) ?? imageFailure(context);
  if (failure?.reason !== RolloutReason.UNSCHEDULABLE) return failure;
  // Stopping pods will make room.
  return context.stopping.some(({ record }) => input.nodeReady(record.node)) ? undefined : failure;
}

/** Returns the failure of an image that can't be pulled. It is known before a pod is stopped for the new revision. */
function imageFailure(context: RolloutContext): Failure | undefined {
  const message = lastingFailure(context.ahead());
  return message === undefined ? undefined : { reason: RolloutReason.IMAGE, message };
}

function failureInput(context: RolloutContext, input: WorkloadInput) {
  const { nowMs, limits, nodeReady } = input;
  const unschedulable = (uid: string) => waitingOf(uid, context, input);
  return { unschedulable, nowMs, limits, isReady: (pod: PodEntry) => isReady(pod, nodeReady) };
}

/** Returns the time since which the pod is unschedulable. Ignores waiting time from before this rollout attempt. */
function waitingOf(
  uid: string,
  { rolloutState }: RolloutContext,
  input: WorkloadInput,
): UnschedulablePod | undefined {
  const waiting = input.unschedulable(uid);
  const startedMs = sinceOf(rolloutState.attempt.startedAt, input);
  return waiting && { ...waiting, sinceMs: Math.max(waiting.sinceMs, startedMs) };
}

/** Returns the update for a new highest number of available pods, which restarts the progress deadline. */
function progress(context: RolloutContext, input: WorkloadInput): RolloutUpdate | undefined {
  const { attempt, hold } = context.rolloutState;
  const now = reached(context.workload, input.pods, input);
  if (now <= attempt.progress) return undefined;
  const sinceNoteMs = input.nowMs - progressedMs(attempt, input);
  const canary = hold.type === "canary" && attempt.progress < hold.pods && now >= hold.pods;
  if (!canary && sinceNoteMs < deadlineMsOf(context, input) / NOTES_PER_DEADLINE) return undefined;
  const why = canary
    ? `${now} new pods are available; the rollout waits for a promotion`
    : counts(context, input);
  return update(attempt, { progress: now, progressedAt: toTimestamp(input.nowMs) }, why);
}

function isLate(context: RolloutContext, input: WorkloadInput): boolean {
  if (waitsForPromotion(context, input)) return false;
  const forRegistry = waitsForRegistry(context.current()) || waitsForImages(context.ahead());
  const patience = forRegistry ? REGISTRY_PATIENCE : 1;
  return (
    input.nowMs - progressedMs(context.rolloutState.attempt, input) >= deadlineMsOf(context, input) * patience
  );
}

function lateness(context: RolloutContext, input: WorkloadInput): Failure {
  const rest = [
    describeWaiting(context.current(), failureInput(context, input)),
    describePrefetch(context.ahead()),
  ];
  const deadline = `no progress for ${Math.round(deadlineMsOf(context, input) / 1000)} s, the progress deadline`;
  return {
    reason: RolloutReason.DEADLINE,
    message: [deadline, ...rest].filter((text) => text !== "").join("; "),
  };
}

function deadlineMsOf({ workload }: RolloutContext, { limits }: WorkloadInput): number {
  return workload.settings.deadlineMs ?? limits.deadlineMs;
}

/** Returns the time of the last progress. Time in which the coordinator could not act doesn't count. */
function progressedMs(attempt: RolloutAttempt, input: WorkloadInput): number {
  return Math.max(input.upSinceMs, sinceOf(attempt.progressedAt, input));
}

function sinceOf(at: RolloutAttempt["startedAt"], { since }: WorkloadInput): number {
  const atMs = toEpochMs(at) ?? 0;
  return since === undefined ? atMs : since(atMs);
}

/** Returns the update for a failure: a rollback to the last good revision, or a failed end that keeps the pods. */
function fail(context: RolloutContext, input: WorkloadInput, { reason, message }: Failure): RolloutUpdate {
  const { attempt, before, beforeNumber } = context.rolloutState;
  const cause = `${counts(context, input)}; ${message}`;
  if (attempt.state === AttemptState.ROLLING_BACK) {
    const text = `${attempt.message}; the rollback to revision ${attempt.rolledBackTo} fails too: ${cause}`;
    return update(attempt, { state: AttemptState.FAILED, message: text }, text);
  }
  if (before === undefined || !context.workload.settings.rollback)
    return update(attempt, { state: AttemptState.FAILED, message: cause, reason }, cause);
  const back = {
    state: AttemptState.ROLLING_BACK,
    rolledBackTo: beforeNumber,
    message: cause,
    reason,
    progress: reached(before, input.pods, input),
    progressedAt: toTimestamp(input.nowMs),
  };
  return update(attempt, back, `roll back to revision ${beforeNumber}: ${cause}`);
}

function update(
  attempt: RolloutAttempt,
  change: Partial<RolloutAttempt>,
  why: string,
  good?: RevisionRecord,
): RolloutUpdate {
  return { type: "update-rollout", attempt: { ...attempt, ...change }, good, why };
}
