import { WorkspacePhase } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { bool, conditionsOf, failed, stopped, withConditions } from "./conditions.ts";
import { finalTransferOf, hasPod, isDisposed, mayDispose, needsSaving } from "./content.ts";
import { lastBackupText, messageOf } from "./message.ts";
import type { Observation } from "./observation.ts";
import { observePod } from "./observe-pod.ts";
import { deadlinesOf, timeoutText } from "./time-out.ts";

/** The order in which an instance passes the phases. It never goes back. */
const RANK: Readonly<Record<number, number>> = {
  [WorkspacePhase.UNKNOWN]: 0,
  [WorkspacePhase.PENDING]: 1,
  [WorkspacePhase.CREATING]: 2,
  [WorkspacePhase.INITIALIZING]: 3,
  [WorkspacePhase.RUNNING]: 4,
  [WorkspacePhase.STOPPING]: 5,
  [WorkspacePhase.STOPPED]: 6,
};

/** Pure: the record after an observation; the same object if nothing changes. A stopped instance never changes. */
export function advance(record: InstanceRecord, observation: Observation): InstanceRecord {
  if (record.phase === WorkspacePhase.STOPPED) return withoutNode(record, observation);
  const seen = observePod(record, observation);
  const lost = withoutNode(seen, observation);
  const stop = withTimeout(withContentFailure(lost, observation), observation);
  const limited = withStoppingLimits(stop, observation);
  const moved = withPhase(limited, observation);
  const described = withConditions(moved, {
    deployed: bool(hasPod(moved)),
    pullingImages: bool(moved.phase === WorkspacePhase.CREATING && pullsImages(observation)),
    networkNotReady: bool(hasPod(moved) && moved.node !== "" && observation.node?.ready === false),
  });
  const message = messageOf(described, observation);
  return message === described.message ? described : { ...described, message };
}

/** Milliseconds since the epoch at which time alone changes the record; undefined: never. */
export function nextChangeMs(record: InstanceRecord, observation: Observation): number | undefined {
  const { settings } = observation;
  const times = deadlinesOf(record, observation).map(({ atMs }) => atMs);
  const stoppingMs = toEpochMs(record.stoppingSince);
  if (
    record.phase === WorkspacePhase.STOPPING &&
    stoppingMs !== undefined &&
    conditionsOf(record).failed === ""
  )
    times.push(stoppingMs + limitOfStopping(record, observation));
  const stoppedMs = toEpochMs(record.stoppedAt);
  if (record.phase === WorkspacePhase.STOPPED && stoppedMs !== undefined)
    times.push(stoppedMs + settings.stoppedRetentionSeconds * 1000);
  return times.length === 0 ? undefined : Math.min(...times);
}

function withoutNode(record: InstanceRecord, { node, nowMs }: Observation): InstanceRecord {
  if (record.node === "" || record.nodeLost || node !== undefined) return record;
  const lost = { ...record, nodeLost: true, podGone: record.podCreated };
  if (record.phase === WorkspacePhase.STOPPED) return lost;
  const saved = !needsSaving(record);
  const why = `node ${record.node} was removed from the cluster before the content was saved`;
  return stopped(saved ? lost : failed(lost, why), "failure", nowMs);
}

function withContentFailure(record: InstanceRecord, { nowMs }: Observation): InstanceRecord {
  if (record.contentStage === ContentStage.FAILED && !record.contentEverReady && record.stop === undefined)
    return stopped(
      failed(record, `content initialization failed: ${record.contentMessage}`),
      "failure",
      nowMs,
    );
  if (record.contentLost) {
    const why = `node ${record.node} has lost the content; ${lastBackupText(record)}`;
    return stopped(record.contentSafe ? record : failed(record, why), "failure", nowMs);
  }
  const final = finalTransferOf(record);
  if (final?.state !== TransferState.FAILED || record.contentKept) return record;
  const reason = `the content could not be saved: ${final.message}; it stays on node ${record.node}`;
  return { ...failed(record, reason), contentKept: true };
}

function withTimeout(record: InstanceRecord, observation: Observation): InstanceRecord {
  const { nowMs } = observation;
  const over = deadlinesOf(record, observation).find(({ atMs }) => atMs <= nowMs);
  if (over === undefined) return record;
  return stopped(withConditions(record, { timeout: timeoutText(over, nowMs) }), "time-out", nowMs);
}

function limitOfStopping(record: InstanceRecord, { settings }: Observation): number {
  const { stoppingSeconds, contentFinalizationSeconds } = settings.timeouts;
  return (hasPod(record) ? stoppingSeconds : contentFinalizationSeconds) * 1000;
}

/** A stop that takes too long is reported as a failure and goes on: time alone never drops content. */
function withStoppingLimits(record: InstanceRecord, observation: Observation): InstanceRecord {
  const sinceMs = toEpochMs(record.stoppingSince);
  if (sinceMs === undefined || observation.nowMs < sinceMs + limitOfStopping(record, observation))
    return record;
  if (hasPod(record))
    return failed(record, `the pod did not stop in time on node ${record.node}; the stop goes on`);
  if (!needsSaving(record)) return record;
  const why = finalTransferOf(record)?.message ?? "";
  return failed(
    record,
    `the final backup did not complete in time${why === "" ? "" : `: ${why}`}; it is tried further`,
  );
}

function withPhase(record: InstanceRecord, observation: Observation): InstanceRecord {
  const phase = phaseOf(record, observation);
  if ((RANK[phase] ?? 0) <= (RANK[record.phase] ?? 0)) return record;
  const at = toTimestamp(observation.nowMs);
  switch (phase) {
    case WorkspacePhase.RUNNING:
      return { ...record, phase, runningSince: at };
    case WorkspacePhase.STOPPING:
      return { ...record, phase, stoppingSince: at };
    case WorkspacePhase.STOPPED:
      return { ...record, phase, stoppedAt: at, stoppingSince: record.stoppingSince ?? at };
    default:
      return { ...record, phase };
  }
}

function phaseOf(record: InstanceRecord, observation: Observation): WorkspacePhase {
  if (record.stop !== undefined)
    return hasEnded(record, observation) ? WorkspacePhase.STOPPED : WorkspacePhase.STOPPING;
  if (record.runningSince !== undefined) return WorkspacePhase.RUNNING;
  if (record.node === "") return WorkspacePhase.PENDING;
  switch (record.contentStage) {
    case ContentStage.READY:
      return isReady(observation) ? WorkspacePhase.RUNNING : WorkspacePhase.INITIALIZING;
    case ContentStage.INITIALIZING:
      return WorkspacePhase.INITIALIZING;
    default:
      return WorkspacePhase.CREATING;
  }
}

/**
 * No container runs, the content is safe or was never worth saving, and the node has deleted it. A node that is away may delete
 * it later.
 */
function hasEnded(record: InstanceRecord, { node }: Observation): boolean {
  if (hasPod(record) || needsSaving(record)) return false;
  return isDisposed(record) || (node?.ready === false && mayDispose(record));
}

function isReady({ pod }: Observation): boolean {
  return pod?.status?.ready === true && pod.status.phase === PodPhase.RUNNING;
}

function pullsImages({ pod }: Observation): boolean {
  return (pod?.status?.containers ?? []).some(
    ({ state }) => state?.$case === "waiting" && /^(ImagePull|ContainerCreating)$/.test(state.value.reason),
  );
}
