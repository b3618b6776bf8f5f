import {
  type ContainerStatus,
  type ContainerTerminated,
  PodPhase,
} from "@forage/proto/forage/agent/v1/agent";
import { JobFailure } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Returns how the pod's containers ended, as reported by its node. Undefined while they run or may restart. */
export function endOf({ status }: PodEntry): "succeeded" | "failed" | undefined {
  if (status?.phase === PodPhase.SUCCEEDED) return "succeeded";
  return status?.phase === PodPhase.FAILED ? "failed" : undefined;
}

/**
 * Reports whether the pod is a job's and all its containers have ended for good, so that it uses no resources of its node.
 * Its record stays for its logs, and while the node removes the rest.
 */
export function usesNothing({ record, status }: PodEntry): boolean {
  if (record.job === undefined || status === undefined) return false;
  const states = status.containers.map(({ state }) => state?.$case);
  switch (status.phase) {
    case PodPhase.SUCCEEDED:
    case PodPhase.FAILED:
      // An evicted pod has failed before its containers have stopped.
      return !states.includes("running");
    case PodPhase.STOPPING:
      return states.length > 0 && states.every((state) => state === "terminated");
    case PodPhase.REMOVED:
      return true;
    default:
      return false;
  }
}

/**
 * Returns the number of failed runs of the pod's containers that were followed by another run in the same pod. A restart
 * may be counted before the new run is reported, so terminations are counted, and restarts only where terminations are
 * missing.
 */
export function failedRunsOf({ status }: PodEntry): number {
  return (status?.containers ?? []).reduce((sum, container) => sum + failedRuns(container), 0);
}

function failedRuns({ terminations, lastTermination, restartCount }: ContainerStatus): number {
  const newest = lastTermination === undefined ? [] : [lastTermination];
  const known = terminations.length > 0 ? terminations : newest;
  return known.length < restartCount ? restartCount : known.filter(isBad).length;
}

/**
 * Returns the newest failure of a container, or the failure that the node reports for the pod. Undefined: nothing has
 * failed.
 */
export function failureOf({ record, status, observedAtMs = 0 }: PodEntry): JobFailure | undefined {
  const ends = (status?.containers ?? []).flatMap(({ name, state, lastTermination }) => {
    // A container that succeeded may have failed before.
    const all = [state?.$case === "terminated" ? state.value : undefined, lastTermination];
    const bad = all.filter((end) => end !== undefined).filter(isBad);
    return bad.map((end) => ({ name, end }));
  });
  const newest = ends.sort((a, b) => millis(b.end) - millis(a.end))[0];
  if (newest === undefined && status?.phase !== PodPhase.FAILED) return undefined;
  return JobFailure.fromPartial({
    pod: record.name,
    node: record.node,
    container: newest?.name ?? "",
    exitCode: newest?.end.exitCode ?? 0,
    signal: newest?.end.signal ?? 0,
    reason: newest?.end.reason ?? status?.reason ?? "",
    message: (newest?.end.message ?? status?.message ?? "").slice(0, MAX_MESSAGE),
    at: toTimestamp(observedAtMs),
  });
}

/** The limit of a message in characters. It holds the last lines, and keeps the status small. */
const MAX_MESSAGE = 2_000;

function isBad({ exitCode, reason }: ContainerTerminated): boolean {
  return exitCode !== 0 || (reason !== "" && reason !== "Completed");
}

function millis({ finishedAt }: ContainerTerminated): number {
  return Number(finishedAt?.seconds ?? 0n) * 1000 + (finishedAt?.nanos ?? 0) / 1e6;
}

/** Formats a failure, such as `container main exited with code 3 (Error); last lines: …`. */
export function failureText(failure: JobFailure): string {
  const { container, exitCode, signal, reason, message } = failure;
  const lines = message.trim();
  if (container === "") return [reason, lines].filter((text) => text !== "").join(": ");
  const how = signal > 0 ? `was killed by signal ${signal}` : `exited with code ${exitCode}`;
  const why = reason === "" ? "" : ` (${reason})`;
  return `container ${container} ${how}${why}${lines === "" ? "" : `; last lines: ${lines}`}`;
}
