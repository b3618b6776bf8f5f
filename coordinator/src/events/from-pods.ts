import { PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type { EventInput } from "../model/event.ts";
import type { PodEntry } from "../state/entries.ts";
import { type ContainerEvent, containerEvents } from "./from-containers.ts";

/** Reasons that concern a pod as a whole, and that are reported with those of its containers. */
const POD_FAULTS: ReadonlySet<string> = new Set([
  "InvalidSpec",
  "InvalidAssignment",
  "JournalNotWritten",
  "OutcomeNotSaved",
  "RuntimeUnavailable",
  "NetworkSetupFailed",
  "RemoveFailed",
  "StopFailed",
]);

/** Returns the events of a pod between two states of its record and status. */
export function podEvents(before: PodEntry | undefined, after: PodEntry | undefined): EventInput[] {
  const entry = after ?? before;
  if (entry === undefined) return [];
  const found =
    after === undefined ? removal(entry) : [...placement(before, after), ...reportEvents(before, after)];
  if (found.length === 0) return [];
  const { namespace, name, node } = entry.record;
  const about = { namespace, kind: "pod", name, workload: entry.workloadKey, node };
  return found.map((event) => ({ ...about, ...event }));
}

/** Returns the event for a pod that no node accepts, with the reason. */
export function unschedulableEvent({ record, workloadKey }: PodEntry, why: string): EventInput {
  const { namespace, name } = record;
  const message = `waits for a node: ${why}`;
  return {
    namespace,
    kind: "pod",
    name,
    workload: workloadKey,
    type: "Warning",
    reason: "Unschedulable",
    message,
  };
}

function removal({ record }: PodEntry): ContainerEvent[] {
  if (record.node === "") return [];
  if (record.stoppingSince !== undefined)
    return [normal("Stopped", `it was removed from node ${record.node}`)];
  return [{ type: "Warning", reason: "Lost", message: `was lost with node ${record.node}` }];
}

function placement(before: PodEntry | undefined, { record }: PodEntry): ContainerEvent[] {
  const events: ContainerEvent[] = [];
  const earlier = before?.record.uid === record.uid ? before.record : undefined;
  if (record.node !== "" && (earlier?.node ?? "") === "")
    events.push(normal("Scheduled", `placed on node ${record.node}`));
  if (record.stoppingSince !== undefined && earlier !== undefined && earlier.stoppingSince === undefined) {
    const why = record.stopReason === "" ? "its workload no longer needs it" : record.stopReason;
    const preempted = why.startsWith("Preempted by ");
    const tainted = why.startsWith("its node has the taint ");
    events.push({
      type: preempted || tainted ? "Warning" : "Normal",
      reason: preempted ? "Preempted" : tainted ? "TaintEviction" : "Stopping",
      message: preempted ? `stops to make room for ${why.slice("Preempted by ".length)}` : `stops: ${why}`,
    });
  }
  return events;
}

/** Returns the events that result from the node's report. */
function reportEvents(before: PodEntry | undefined, after: PodEntry): ContainerEvent[] {
  const { status } = after;
  const earlier = before?.record.uid === after.record.uid ? before.status : undefined;
  if (status === undefined || status === earlier) return [];
  const stopping = after.record.stoppingSince !== undefined;
  // Terminations of containers are expected while the pod stops.
  const containers = stopping ? [] : containerEvents(earlier?.containers ?? [], status.containers);
  return [...containers, ...causes(earlier, status, stopping), ...readiness(earlier, status, stopping)];
}

function causes(earlier: PodStatus | undefined, status: PodStatus, stopping: boolean): ContainerEvent[] {
  const { phase, reason, message } = status;
  if (phase === PodPhase.SUCCEEDED && earlier?.phase !== phase && !stopping)
    return [normal("Completed", "its containers have completed successfully")];
  const same = earlier?.reason === reason && earlier.phase === phase;
  if (same || reason === "") return [];
  if (reason === "Evicted" && earlier?.reason !== reason && !stopping)
    return [{ type: "Warning", reason, message: `its node has evicted it: ${message}` }];
  if (POD_FAULTS.has(reason) && earlier?.reason !== reason) return [{ type: "Warning", reason, message }];
  if (phase === PodPhase.FAILED && earlier?.phase !== phase && !stopping)
    return [{ type: "Warning", reason: "Failed", message: message === "" ? reason : message }];
  return [];
}

/**
 * Returns the events for changed readiness. A stopping pod is not expected to be ready, and a probe
 * that has never passed has not failed yet.
 */
function readiness(earlier: PodStatus | undefined, status: PodStatus, stopping: boolean): ContainerEvent[] {
  if (status.ready && !earlier?.ready) return [normal("Ready", "all of its containers are ready")];
  if (stopping) return [];
  const { reason, message } = status;
  const probes = reason === "ContainersNotReady" && message.includes(" probe fails");
  if (!status.ready && earlier?.ready) {
    const why = message === "" ? reason : message;
    return [
      {
        type: "Warning",
        reason: probes ? "ProbeFailed" : "Unready",
        message: `no longer ready${why === "" ? "" : `: ${why}`}`,
      },
    ];
  }
  const asBefore = earlier?.reason === reason && earlier.message === message;
  return !status.ready && probes && !asBefore ? [{ type: "Warning", reason: "ProbeFailed", message }] : [];
}

function normal(reason: string, message: string): ContainerEvent {
  return { type: "Normal", reason, message };
}
