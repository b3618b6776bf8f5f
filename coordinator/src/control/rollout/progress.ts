import type { RolloutResource } from "@forage/proto/forage/store/v1/store";
import { RolloutReason } from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { progressOfJob } from "../job/progress.ts";
import { failureOf, whatItWaitsFor } from "./pod-trouble.ts";
import type { ProgressInput, ResourceProgress } from "./progress-input.ts";

/** Pure: the state of one resource of a rollout, in words that say why. */
export function progressOf(input: ProgressInput): ResourceProgress {
  const { target } = input;
  if (isTerminal(target.status))
    return { ...pick(target), reason: target.reason, message: target.message, status: target.status };
  if (target.action === "remove") return removal(input);
  const { resource } = input;
  if (resource === undefined || resource.record.deleting)
    return superseded(input, "was deleted by a later request");
  if (resource.record.specHash !== target.specHash) {
    return superseded(input, `superseded by rollout ${resource.record.rolloutId}`);
  }
  if (input.job !== undefined) return { ...pick(target), ...progressOfJob(input, input.job) };
  if (resource.workload === undefined) return serviceProgress(input);
  return workloadProgress(input, resource.workload);
}

export function isTerminal(status: RolloutStatus): boolean {
  return (
    status === RolloutStatus.SUCCEEDED ||
    status === RolloutStatus.FAILED ||
    status === RolloutStatus.ROLLED_BACK
  );
}

/** When time alone can change the answer next. */
export function nextLookMs(input: ProgressInput): number {
  const { limits, startedMs, nowMs } = input;
  const due = [startedMs + limits.deadlineMs];
  for (const pod of input.pods) {
    const waiting = input.unplaced(pod.record.uid);
    if (waiting !== undefined) due.push(waiting.sinceMs + limits.placementMs);
    const stableMs = stableAtMs(pod, input);
    if (input.isReady(pod)) due.push(stableMs);
  }
  // What has passed was seen by this look, and must not make the next one come at once, and so on.
  const ahead = due.filter((dueMs) => dueMs > nowMs);
  return ahead.length === 0 ? limits.deadlineMs : Math.max(minLookMs, Math.min(...ahead) - nowMs);
}

/** Timers are not exact; a look that comes a little early must not spin. */
const minLookMs = 10;
/** A container that has crashed before proves itself for longer: the time after which its first retry is due. */
const stableAfterCrashMs = 10_000;

/** When a ready pod counts as done. */
function stableAtMs({ status, observedAtMs = 0 }: PodEntry, { limits }: ProgressInput): number {
  const crashed = status?.containers.some((container) => container.restartCount > 0) ?? false;
  return observedAtMs + (crashed ? Math.max(stableAfterCrashMs, limits.stableMs) : limits.stableMs);
}

function workloadProgress(
  input: ProgressInput,
  workload: NonNullable<ResourceEntry["workload"]>,
): ResourceProgress {
  const { replicas, currentHashes } = workload;
  const active = input.pods.filter((pod) => pod.record.stoppingSince === undefined);
  const current = active.filter((pod) => currentHashes.has(pod.record.templateHash));
  const old = active.length - current.length;
  const ready = current.filter(input.isReady).length;
  const counts = `${ready}/${replicas} ready`;
  if (ready === replicas && current.length === replicas && old === 0) {
    const unstable = current.filter((pod) => stableAtMs(pod, input) > input.nowMs).length;
    return unstable === 0 ? done(input, counts) : at(input, RolloutStatus.IN_PROGRESS, counts);
  }

  const failure = failureOf(current, input);
  if (failure !== undefined) return failed(input, `${counts}; ${failure.message}`, failure.reason);
  if (isLate(input)) {
    const rest = whatItWaitsFor(current, input);
    const message = `${counts} ${afterDeadline(input)}${rest === "" ? "" : `; ${rest}`}`;
    return failed(input, message, RolloutReason.DEADLINE);
  }
  const started = current.some((pod) => pod.record.node !== "");
  const parts = [counts];
  if (old > 0) parts.push(`${old} of an older revision left`);
  const rest = whatItWaitsFor(current, input);
  if (rest !== "") parts.push(rest);
  return at(input, started ? RolloutStatus.IN_PROGRESS : RolloutStatus.PENDING, parts.join("; "));
}

function serviceProgress(input: ProgressInput): ResourceProgress {
  const { readyEndpoints } = input;
  return done(input, readyEndpoints === 1 ? "1 endpoint ready" : `${readyEndpoints} endpoints ready`);
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
