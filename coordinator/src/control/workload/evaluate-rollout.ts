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
import { type Failure, failureOf, waitsForRegistry, whatItWaitsFor } from "./pod-failure.ts";
import type { ImagesOnNode } from "./prefetch.ts";
import { describePrefetch, lastingFailure, waitsForImages } from "./prefetch-status.ts";
import type { RolloutState } from "./rollout-state.ts";
import type { WorkloadInput } from "./workload-input.ts";
import type { WorkloadStep } from "./workload-step.ts";

export interface RolloutContext {
  readonly rolloutState: RolloutState;
  /** The effective workload. */
  readonly workload: Workload;
  /** The pods that are not stopping and will not stop now. */
  readonly staying: readonly PodEntry[];
  readonly stopping: readonly PodEntry[];
  /** The pods of `staying` with the workload's revision. Computed on first use. */
  readonly current: () => readonly PodEntry[];
  /** Computed on first use, because with many pods it takes most of the time. */
  readonly ahead: () => ImagesAhead;
}

type ImagesAhead = ReadonlyMap<string, ImagesOnNode>;

export type RolloutUpdate = WorkloadStep & { readonly type: "update-rollout" };

/** The factor by which the wait for an unavailable registry is longer than others, because the revision is not its cause. */
const REGISTRY_PATIENCE = 6;
/** Progress is written down so often at most in the time of one deadline, or each pod of many would cost a write. */
const NOTES_PER_DEADLINE = 10;

/** Reports whether the try has come further or to its end. Undefined: neither. Pure. */
export function evaluateRollout(look: RolloutContext, input: WorkloadInput): RolloutUpdate | undefined {
  const { attempt, own, hold } = look.rolloutState;
  const { state } = attempt;
  if (state === AttemptState.SUCCEEDED || state === AttemptState.ROLLED_BACK) return undefined;
  if (isDone(look, input)) {
    if (attempt.rolledBackTo > 0) {
      const why = `rolled back to revision ${attempt.rolledBackTo}: ${attempt.message}`;
      return update(attempt, { state: AttemptState.ROLLED_BACK }, why);
    }
    const message = counts(look, input);
    const ended = { state: AttemptState.SUCCEEDED, message, reason: RolloutReason.UNSPECIFIED };
    // Without replicas no pod has shown that the version is good.
    const proven = look.workload.replicas > 0;
    return update(attempt, ended, message, proven && !own?.good ? own : undefined);
  }
  if (state === AttemptState.FAILED || hold.type === "paused") return undefined;
  const failure = state === AttemptState.PROGRESSING ? troubleOf(look, input) : undefined;
  if (failure !== undefined) return fail(look, input, failure);
  return (
    progress(look, input) ?? (isLate(look, input) ? fail(look, input, lateness(look, input)) : undefined)
  );
}

/** Returns the times at which the rollout may be decided without an event. */
export function rolloutUpdateTimesMs(look: RolloutContext, input: WorkloadInput): number[] {
  const { attempt, hold } = look.rolloutState;
  if (attempt.state !== AttemptState.PROGRESSING && attempt.state !== AttemptState.ROLLING_BACK) return [];
  if (hold.type === "paused") return [];
  const times = look.current().flatMap(({ record }) => {
    const waiting = waitingOf(record.uid, look, input);
    return waiting === undefined ? [] : [waiting.sinceMs + input.limits.placementMs];
  });
  const sinceMs = progressedMs(attempt, input);
  const deadlineMs = deadlineMsOf(look, input);
  times.push(
    sinceMs + deadlineMs / NOTES_PER_DEADLINE,
    sinceMs + deadlineMs,
    sinceMs + deadlineMs * REGISTRY_PATIENCE,
  );
  return times;
}

/** Reports whether a canary has all its pods and waits for its promotion. */
export function waitsForPromotion(look: RolloutContext, input: WorkloadInput): boolean {
  const { attempt, hold } = look.rolloutState;
  return hold.type === "canary" && Math.max(attempt.progress, availableOf(look, input)) >= hold.pods;
}

export function counts(look: RolloutContext, input: WorkloadInput): string {
  const ready = look.current().filter((pod) => isReady(pod, input.nodeReady)).length;
  return `${ready}/${look.workload.replicas} ready`;
}

function availableOf(look: RolloutContext, input: WorkloadInput): number {
  const stableMs = stableMsOf(look.workload, input);
  return look.current().filter((pod) => isAvailable(pod, stableMs, input)).length;
}

function isDone(look: RolloutContext, input: WorkloadInput): boolean {
  const { replicas } = look.workload;
  return look.staying.length === replicas && availableOf(look, input) === replicas;
}

function troubleOf(look: RolloutContext, input: WorkloadInput): Failure | undefined {
  const failure = failureOf(look.current(), troubleInput(look, input)) ?? imageFailure(look);
  if (failure?.reason !== RolloutReason.UNSCHEDULABLE) return failure;
  // Stopping pods will make room.
  return look.stopping.some(({ record }) => input.nodeReady(record.node)) ? undefined : failure;
}

/** Known before a pod has given way for it. */
function imageFailure(look: RolloutContext): Failure | undefined {
  const message = lastingFailure(look.ahead());
  return message === undefined ? undefined : { reason: RolloutReason.IMAGE, message };
}

function troubleInput(look: RolloutContext, input: WorkloadInput) {
  const { nowMs, limits, nodeReady } = input;
  const unschedulable = (uid: string) => waitingOf(uid, look, input);
  return { unschedulable, nowMs, limits, isReady: (pod: PodEntry) => isReady(pod, nodeReady) };
}

/** Ignores waiting time from before this rollout attempt. */
function waitingOf(
  uid: string,
  { rolloutState }: RolloutContext,
  input: WorkloadInput,
): UnschedulablePod | undefined {
  const waiting = input.unschedulable(uid);
  const startedMs = sinceOf(rolloutState.attempt.startedAt, input);
  return waiting && { ...waiting, sinceMs: Math.max(waiting.sinceMs, startedMs) };
}

/** Records a new highest number of available pods, which restarts the progress deadline. */
function progress(look: RolloutContext, input: WorkloadInput): RolloutUpdate | undefined {
  const { attempt, hold } = look.rolloutState;
  const now = reached(look.workload, input.pods, input);
  if (now <= attempt.progress) return undefined;
  const sinceNoteMs = input.nowMs - progressedMs(attempt, input);
  const canary = hold.type === "canary" && attempt.progress < hold.pods && now >= hold.pods;
  if (!canary && sinceNoteMs < deadlineMsOf(look, input) / NOTES_PER_DEADLINE) return undefined;
  const why = canary ? `${now} new pods are available; the rest waits for a promotion` : counts(look, input);
  return update(attempt, { progress: now, progressedAt: toTimestamp(input.nowMs) }, why);
}

function isLate(look: RolloutContext, input: WorkloadInput): boolean {
  if (waitsForPromotion(look, input)) return false;
  const forRegistry = waitsForRegistry(look.current()) || waitsForImages(look.ahead());
  const patience = forRegistry ? REGISTRY_PATIENCE : 1;
  return input.nowMs - progressedMs(look.rolloutState.attempt, input) >= deadlineMsOf(look, input) * patience;
}

function lateness(look: RolloutContext, input: WorkloadInput): Failure {
  const rest = [whatItWaitsFor(look.current(), troubleInput(look, input)), describePrefetch(look.ahead())];
  const deadline = `no progress for ${Math.round(deadlineMsOf(look, input) / 1000)} s, the progress deadline`;
  return {
    reason: RolloutReason.DEADLINE,
    message: [deadline, ...rest].filter((text) => text !== "").join("; "),
  };
}

function deadlineMsOf({ workload }: RolloutContext, { limits }: WorkloadInput): number {
  return workload.settings.deadlineMs ?? limits.deadlineMs;
}

/** Returns the time of the last progress. Time in which the coordinator could not act does not count. */
function progressedMs(attempt: RolloutAttempt, input: WorkloadInput): number {
  return Math.max(input.upSinceMs, sinceOf(attempt.progressedAt, input));
}

function sinceOf(at: RolloutAttempt["startedAt"], { since }: WorkloadInput): number {
  const atMs = toEpochMs(at) ?? 0;
  return since === undefined ? atMs : since(atMs);
}

/** Back to the last good revision, or an end that leaves the pods as they are. */
function fail(look: RolloutContext, input: WorkloadInput, { reason, message }: Failure): RolloutUpdate {
  const { attempt, before, beforeNumber } = look.rolloutState;
  const cause = `${counts(look, input)}; ${message}`;
  if (attempt.state === AttemptState.ROLLING_BACK) {
    const text = `${attempt.message}; revision ${attempt.rolledBackTo}, to which it is rolled back, doesn't come up either: ${cause}`;
    return update(attempt, { state: AttemptState.FAILED, message: text }, text);
  }
  if (before === undefined || !look.workload.settings.rollback)
    return update(attempt, { state: AttemptState.FAILED, message: cause, reason }, cause);
  const back = {
    state: AttemptState.ROLLING_BACK,
    rolledBackTo: beforeNumber,
    message: cause,
    reason,
    progress: reached(before, input.pods, input),
    progressedAt: toTimestamp(input.nowMs),
  };
  return update(attempt, back, `back to revision ${beforeNumber}: ${cause}`);
}

function update(
  attempt: RolloutAttempt,
  change: Partial<RolloutAttempt>,
  why: string,
  good?: RevisionRecord,
): RolloutUpdate {
  return { type: "update-rollout", attempt: { ...attempt, ...change }, good, why };
}
