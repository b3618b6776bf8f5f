import { AttemptState, RolloutReason, type RolloutResource } from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { hint } from "../../model/hint.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { cronMessage } from "../cron/progress.ts";
import { type UnmetDependency, waitingText } from "../depends/waits-for.ts";
import { progressOfJob } from "../job/progress.ts";
import { availableAtMs } from "../workload/availability.ts";
import { describeWaiting, failureOf } from "../workload/pod-failure.ts";
import type { ProgressInput, ResourceProgress } from "./progress-input.ts";

/** Returns the progress of one resource of a rollout, with a message that explains it. Pure. */
export function progressOf(input: ProgressInput): ResourceProgress {
  const { target } = input;
  if (isTerminal(target.status)) return storedProgress(target);
  if (target.action === "remove") return removal(input);
  const { resource } = input;
  if (resource === undefined || resource.record.deleting)
    return superseded(input, "was deleted by a later request");
  if (isAnother(resource, target)) {
    return superseded(input, `superseded by rollout ${resource.record.rolloutId}`);
  }
  // The rollout that changed the resource stays open. Among the rollouts that didn't change it, only the newest does.
  if (target.action === "unchanged" && input.newer !== undefined)
    return superseded(input, `superseded by rollout ${input.newer}`);
  if (input.waitsFor !== undefined && input.waitsFor.length > 0) return waiting(input, input.waitsFor);
  if (input.job !== undefined) return { ...pick(target), ...progressOfJob(input, input.job) };
  const cron = cronMessage(resource, input.nowMs);
  if (cron !== undefined) return done(input, cron);
  if (resource.workload === undefined) return serviceProgress(input);
  return workloadProgress(input, resource.workload);
}

/** Returns the progress of a resource whose final state is stored. */
export function storedProgress(target: RolloutResource): ResourceProgress {
  return { ...pick(target), reason: target.reason, message: target.message, status: target.status };
}

export function isTerminal(status: RolloutStatus): boolean {
  return (
    status === RolloutStatus.SUCCEEDED ||
    status === RolloutStatus.FAILED ||
    status === RolloutStatus.ROLLED_BACK
  );
}

/** Returns the next time at which the progress can change without an event. */
export function nextEvaluationMs(input: ProgressInput): number {
  const { limits, startedMs, nowMs } = input;
  const due = [startedMs + limits.deadlineMs];
  for (const pod of input.pods) {
    const waiting = input.unschedulable(pod.record.uid);
    if (waiting !== undefined) due.push(waiting.sinceMs + limits.placementMs);
    const stableMs = stableAtMs(pod, input);
    if (input.isReady(pod)) due.push(stableMs);
  }
  // Times in the past are part of this evaluation. They must not cause the next one at once.
  const ahead = due.filter((dueMs) => dueMs > nowMs);
  return ahead.length === 0 ? limits.deadlineMs : Math.max(MIN_CHECK_MS, Math.min(...ahead) - nowMs);
}

/** The shortest delay of an evaluation. Timers are not exact, and an evaluation that is slightly early must not spin. */
const MIN_CHECK_MS = 10;
/** Returns the time at which a ready pod counts as available. */
function stableAtMs(pod: PodEntry, input: ProgressInput): number {
  const { limits, resource } = input;
  return availableAtMs(pod, resource?.workload?.settings.minReadyMs ?? limits.stableMs, input);
}

/**
 * Reports whether the resource was applied again, with the same or other content. Rollouts of earlier versions have no
 * generation recorded.
 */
function isAnother({ record }: ResourceEntry, { generation, specHash }: RolloutResource): boolean {
  return generation === 0n ? record.specHash !== specHash : record.generation !== generation;
}

function workloadProgress(
  input: ProgressInput,
  workload: NonNullable<ResourceEntry["workload"]>,
): ResourceProgress {
  const attempt = input.rollout?.attempt;
  const { SUCCEEDED, ROLLED_BACK, ROLLING_BACK, FAILED } = AttemptState;
  const back = `revision ${attempt?.rolledBackTo}`;
  if (attempt?.state === ROLLED_BACK) {
    const message = `rolled back to ${back}: ${attempt.message}`;
    return { ...at(input, RolloutStatus.ROLLED_BACK, message), reason: attempt.reason };
  }
  if (attempt?.state === FAILED) return failed(input, attempt.message, attempt.reason);
  if (attempt?.state === ROLLING_BACK) {
    const message = `rolling back to ${back}: ${attempt.message}; now ${progressTexts(input, workload).text}`;
    return at(input, RolloutStatus.IN_PROGRESS, message);
  }
  if (input.target.action === "unchanged" && attempt?.state !== AttemptState.PROGRESSING)
    return unchangedProgress(input, workload);
  if (attempt?.state === SUCCEEDED) return done(input, attempt.message);
  const { started, text } = progressTexts(input, workload);
  const status = started ? RolloutStatus.IN_PROGRESS : RolloutStatus.PENDING;
  return at(
    input,
    status,
    [text, heldText(input), input.rollout?.prefetchStatus ?? ""].filter((part) => part !== "").join("; "),
  );
}

/** Returns the progress of a resource that the apply didn't change. It depends on the pods only. */
function unchangedProgress(
  input: ProgressInput,
  workload: NonNullable<ResourceEntry["workload"]>,
): ResourceProgress {
  const { current, old, ready, counts, text, started } = progressTexts(input, workload);
  if (ready === workload.replicas && current.length === workload.replicas && old === 0) {
    const unstable = current.filter((pod) => stableAtMs(pod, input) > input.nowMs).length;
    return unstable === 0 ? done(input, counts) : at(input, RolloutStatus.IN_PROGRESS, counts);
  }
  const failure = failureOf(current, input);
  if (failure !== undefined) return failed(input, `${counts}; ${failure.message}`, failure.reason);
  if (isLate(input)) {
    const rest = describeWaiting(current, input);
    const message = `${counts} ${afterDeadline(input)}${rest === "" ? "" : `; ${rest}`}`;
    return failed(input, message, RolloutReason.DEADLINE);
  }
  return at(input, started ? RolloutStatus.IN_PROGRESS : RolloutStatus.PENDING, text);
}

interface PodsLook {
  readonly current: readonly PodEntry[];
  readonly old: number;
  readonly ready: number;
  /** The counts, such as `1/2 ready`. */
  readonly counts: string;
  /** The counts, and the reasons why the rollout waits. */
  readonly text: string;
  readonly started: boolean;
}

function progressTexts(input: ProgressInput, workload: NonNullable<ResourceEntry["workload"]>): PodsLook {
  const active = input.pods.filter((pod) => pod.record.stoppingSince === undefined);
  const current = active.filter((pod) => workload.currentHashes.has(pod.record.templateHash));
  const old = active.length - current.length;
  const ready = current.filter(input.isReady).length;
  const counts = `${ready}/${workload.replicas} ready`;
  const parts = [counts];
  if (old > 0) parts.push(`${old} of an older revision left`);
  const rest = describeWaiting(current, input);
  if (rest !== "") parts.push(rest);
  const started = current.some((pod) => pod.record.node !== "");
  return { current, old, ready, counts, text: parts.join("; "), started };
}

/** Returns the reason why a rollout without a failure waits. */
function heldText({ rollout, target, resource }: ProgressInput): string {
  const namespace = resource?.record.namespace ?? "";
  const name = `${target.kind}/${target.name}`;
  if (rollout?.hold.type === "paused") return `paused until: ${hint(namespace, `rollout resume ${name}`)}`;
  if (rollout?.hold.type !== "canary") return "";
  const pods = rollout.hold.pods === 1 ? "1 pod" : `${rollout.hold.pods} pods`;
  if (!rollout.waitsForPromotion) return `is paused after ${pods} of the new revision`;
  return `waits for a promotion after ${pods} of the new revision: ${hint(namespace, `rollout promote ${name}`)}, or undo`;
}

/**
 * Returns the progress of a resource with unmet dependencies. A job waits without a limit, other resources until the
 * progress deadline.
 */
function waiting(input: ProgressInput, waitsFor: readonly UnmetDependency[]): ResourceProgress {
  const text = waitingText(waitsFor);
  if (waitsFor.some((one) => one.failed)) return failed(input, text, RolloutReason.CRASH);
  const isPatient = waitsFor.some(({ name }) => name.startsWith("job/"));
  if (isPatient || !isLate(input)) return at(input, RolloutStatus.PENDING, text);
  return failed(input, `${text}; unchanged ${afterDeadline(input)}`, RolloutReason.DEADLINE);
}

function serviceProgress(input: ProgressInput): ResourceProgress {
  const { readyEndpoints, target, routeProblem = "" } = input;
  if (target.kind === "route") return done(input, routeProblem === "" ? "accepted" : routeProblem);
  const endpoints = readyEndpoints === 1 ? "1 endpoint ready" : `${readyEndpoints} endpoints ready`;
  const { serviceFailure: failure, targetProgress: behind, idleTarget } = input;
  if (failure !== undefined) {
    const text = `${endpoints}: ${failure.reason}: ${failure.message}`;
    return failure.mayPass && !isLate(input) ? at(input, RolloutStatus.IN_PROGRESS, text) : done(input, text);
  }
  if (behind !== undefined && !isTerminal(behind.status))
    return at(input, RolloutStatus.IN_PROGRESS, `${endpoints}; waits for ${behind.kind}/${behind.name}`);
  if (behind?.status === RolloutStatus.FAILED && readyEndpoints === 0)
    return failed(input, `${endpoints}: ${behind.kind}/${behind.name} failed`, behind.reason);
  if (idleTarget !== undefined) {
    const why = `no pod of container_service/${idleTarget.name} is ready`;
    if (idleTarget.settled || isLate(input)) return done(input, `${endpoints}: ${why}`);
    return at(input, RolloutStatus.IN_PROGRESS, `${endpoints}; ${why}`);
  }
  return done(input, routeProblem === "" ? endpoints : `${endpoints}; its route: ${routeProblem}`);
}

function removal(input: ProgressInput): ResourceProgress {
  const { resource, pods } = input;
  if (resource === undefined) return done(input, "removed");
  if (!resource.record.deleting)
    return superseded(input, `applied again by rollout ${resource.record.rolloutId}`);
  const stopping = pods.length === 1 ? "stopping 1 pod" : `stopping ${pods.length} pods`;
  if (!isLate(input)) return at(input, RolloutStatus.IN_PROGRESS, stopping);
  const nodes = [...new Set(pods.map((pod) => pod.record.node))].sort();
  return failed(input, `${stopping} ${afterDeadline(input)}, on ${nodes.join(", ")}`, RolloutReason.DEADLINE);
}

function isLate({ nowMs, startedMs, limits }: ProgressInput): boolean {
  return nowMs - startedMs >= limits.deadlineMs;
}

function afterDeadline({ limits }: ProgressInput): string {
  return `after the progress deadline of ${Math.round(limits.deadlineMs / 1000)} s`;
}

function pick(target: RolloutResource) {
  return { kind: target.kind, name: target.name, action: target.action };
}

function at(input: ProgressInput, status: RolloutStatus, message: string): ResourceProgress {
  return { ...pick(input.target), status, message, reason: RolloutReason.UNSPECIFIED };
}

function done(input: ProgressInput, message: string): ResourceProgress {
  return at(input, RolloutStatus.SUCCEEDED, message);
}

function failed(input: ProgressInput, message: string, reason: RolloutReason): ResourceProgress {
  return { ...at(input, RolloutStatus.FAILED, message), reason };
}

function superseded(input: ProgressInput, message: string): ResourceProgress {
  return failed(input, message, RolloutReason.SUPERSEDED);
}
