import { type ContainerTerminated, PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { PodEntry } from "../../state/entries.ts";
import { failed, stopped, withConditions } from "./conditions.ts";
import { needsSaving } from "./content.ts";
import type { Observation } from "./observation.ts";
import { isHeadless } from "./status.ts";

/** Returns the record updated from the pod's record and status. */
export function observePod(record: InstanceRecord, observation: Observation): InstanceRecord {
  const { pod, nowMs } = observation;
  if (!record.podCreated) return record;
  if (pod === undefined || pod.record.uid !== record.podUid) return podGone(record, observation);
  const bound = pod.record.node === "" || record.node !== "" ? record : { ...record, node: pod.record.node };
  if (bound.stop !== undefined) return withTaskFailure(bound, pod);
  const { stoppingSince, stopReason } = pod.record;
  if (stoppingSince !== undefined) return { ...stopped(bound, "pod", nowMs), message: stopReason };
  return observeEnd(bound, pod, nowMs);
}

function podGone(record: InstanceRecord, { nowMs, node }: Observation): InstanceRecord {
  if (record.podGone) return record;
  const gone = { ...record, podGone: true };
  if (gone.stop !== undefined) return gone;
  // Only the first reason is kept, so it must also describe the loss of the content.
  const unsaved = needsSaving(gone) ? " before the content was saved" : "";
  const why =
    record.node !== "" && node?.revoked !== false
      ? `node ${record.node} was removed from the cluster${unsaved}`
      : "its pod was removed";
  return stopped(failed(gone, why), "failure", nowMs);
}

function observeEnd(record: InstanceRecord, pod: PodEntry, nowMs: number): InstanceRecord {
  const refusal = imageRefusal(pod);
  if (refusal !== undefined) return stopped(failed(record, refusal), "failure", nowMs);
  const phase = pod.status?.phase;
  if (phase !== PodPhase.SUCCEEDED && phase !== PodPhase.FAILED) return record;
  if (isHeadless(record.type)) return stopped(withTaskFailure(record, pod), "exit", nowMs);
  const { exitCode = 0, reason = "", message = "" } = endOf(pod) ?? {};
  const why =
    phase === PodPhase.SUCCEEDED
      ? "container workspace completed; containers of a workspace pod are not supposed to do that"
      : `container workspace ran with an error: ${describeEnd(exitCode, reason, message, pod)}`;
  return stopped(failed(record, why), "failure", nowMs);
}

/** A failed task of a headless workspace is not a failure of the workspace. */
function withTaskFailure(record: InstanceRecord, pod: PodEntry): InstanceRecord {
  if (!isHeadless(record.type) || pod.status?.phase !== PodPhase.FAILED) return record;
  // After a stop, the container is ended by a signal, which is not a failure of its task.
  if (record.stop !== undefined || record.conditions?.headlessTaskFailed) return record;
  const { exitCode = 0, reason = "", message = "" } = endOf(pod) ?? {};
  return withConditions(record, { headlessTaskFailed: describeEnd(exitCode, reason, message, pod) });
}

/** The length limit of a message in characters, enough for the last lines of a task's output. */
const MAX_END_LENGTH = 1_000;

function describeEnd(exitCode: number, reason: string, message: string, { status }: PodEntry): string {
  if (exitCode === 0 && reason === "") return (status?.message || status?.reason) ?? "the pod failed";
  const lines = message.trim() === "" ? "" : `: ${message.trim()}`;
  return `exit code ${exitCode}${reason === "" ? "" : ` (${reason})`}${lines}`.slice(0, MAX_END_LENGTH);
}

function endOf({ status }: PodEntry): ContainerTerminated | undefined {
  const container = status?.containers.find(({ init }) => !init);
  return container?.state?.$case === "terminated" ? container.state.value : container?.lastTermination;
}

/**
 * Returns the error if the registry permanently refuses the image. Temporary failures are retried
 * until the start times out.
 */
function imageRefusal({ status }: PodEntry): string | undefined {
  for (const { state, image } of status?.containers ?? []) {
    if (state?.$case !== "waiting" || !state.value.reason.startsWith("ErrImage")) continue;
    return `cannot pull image ${image}: ${state.value.message || state.value.reason}`;
  }
  return undefined;
}
