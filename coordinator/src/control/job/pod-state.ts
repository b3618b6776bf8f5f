import {
  type ContainerStatus,
  type ContainerTerminated,
  PodPhase,
} from "@forage/proto/forage/agent/v1/agent";
import { JobFailure } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Returns how the pod's containers ended, as its node reports; undefined while they may still run or restart. */
export function endOf({ status }: PodEntry): "succeeded" | "failed" | undefined {
  if (status?.phase === PodPhase.SUCCEEDED) return "succeeded";
  return status?.phase === PodPhase.FAILED ? "failed" : undefined;
}

/**
 * Reports whether the pod is a job's and all of its containers have ended for good, so that it uses nothing of its node. Its
 * record stays for the logs, and while the node removes what is left.
 */
export function usesNothing({ record, status }: PodEntry): boolean {
  if (record.job === undefined || status === undefined) return false;
  const states = status.containers.map(({ state }) => state?.$case);
  switch (status.phase) {
    case PodPhase.SUCCEEDED:
    case PodPhase.FAILED:
      // A pod that its node evicts has failed before its containers have stopped.
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
 * Returns the number of failed runs of the pod's containers that another run in the same pod follows. A container that starts
 * again may count as restarted before its new run is reported. Therefore ends are counted, and restarts only where some ends are
 * unreported.
 */
export function failedRunsOf({ status }: PodEntry): number {
  return (status?.containers ?? []).reduce((sum, container) => sum + failedRuns(container), 0);
}

function failedRuns({ terminations, lastTermination, restartCount }: ContainerStatus): number {
  const newest = lastTermination === undefined ? [] : [lastTermination];
  const told = terminations.length > 0 ? terminations : newest;
  return told.length < restartCount ? restartCount : told.filter(isBad).length;
}

/** The newest bad end of one of its containers, or what its node says of the pod; undefined: nothing of it has failed. */
export function failureOf({ record, status, observedAtMs = 0 }: PodEntry): JobFailure | undefined {
  const ends = (status?.containers ?? []).flatMap(({ name, state, lastTermination }) => {
    // One that ended well in the end may have failed before.
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

/** The limit of a message in characters: enough for the last lines, and the status stays small. */
const MAX_MESSAGE = 2_000;

function isBad({ exitCode, reason }: ContainerTerminated): boolean {
  return exitCode !== 0 || (reason !== "" && reason !== "Completed");
}

function millis({ finishedAt }: ContainerTerminated): number {
  return Number(finishedAt?.seconds ?? 0n) * 1000 + (finishedAt?.nanos ?? 0) / 1e6;
}

/** `container main exited with code 3 (Error); last lines: …` */
export function failureText(failure: JobFailure): string {
  const { container, exitCode, signal, reason, message } = failure;
  const lines = message.trim();
  if (container === "") return [reason, lines].filter((text) => text !== "").join(": ");
  const how = signal > 0 ? `was ended by signal ${signal}` : `exited with code ${exitCode}`;
  const why = reason === "" ? "" : ` (${reason})`;
  return `container ${container} ${how}${why}${lines === "" ? "" : `; last lines: ${lines}`}`;
}
