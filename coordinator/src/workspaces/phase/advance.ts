import { WorkspacePhase } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import { bool, conditionsOf, failed, stopped, withConditions } from "./conditions.ts";
import { finalTransferOf, hasPod, isDisposed, isKept, mayDispose, needsSaving } from "./content.ts";
import { lastBackupText, messageOf, olderBackupText, unfinishedContentText } from "./message.ts";
import { type Observation, presentTime } from "./observation.ts";
import { observePod } from "./observe-pod.ts";
import { deadlinesOf, reconnectedMs, timeoutText } from "./time-out.ts";

/**
 * The order of the phases. An instance never returns to a phase of lower rank. RUNNING and
 * INTERRUPTED have equal ranks, because a workspace may alternate between them.
 */
const RANK: Readonly<Record<number, number>> = {
  [WorkspacePhase.UNKNOWN]: 0,
  [WorkspacePhase.PENDING]: 1,
  [WorkspacePhase.CREATING]: 2,
  [WorkspacePhase.INITIALIZING]: 3,
  [WorkspacePhase.RUNNING]: 4,
  [WorkspacePhase.INTERRUPTED]: 4,
  [WorkspacePhase.STOPPING]: 5,
  [WorkspacePhase.STOPPED]: 6,
};

/**
 * Returns the record after an observation, or the same object if nothing changes. A stopped
 * instance never changes.
 */
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

/**
 * Returns the time (milliseconds since the epoch) at which the record changes without any event;
 * undefined means never.
 */
export function nextChangeMs(record: InstanceRecord, observation: Observation): number | undefined {
  const times = deadlinesOf(record, observation).map(({ atMs }) => atMs);
  const limitMs = stoppingLimitMs(record, observation);
  if (record.phase === WorkspacePhase.STOPPING && limitMs !== undefined && conditionsOf(record).failed === "")
    times.push(limitMs);
  if (record.phase === WorkspacePhase.RUNNING && observation.node?.ready === false)
    times.push(reconnectedMs(observation));
  const stoppedMs = toEpochMs(record.stoppedAt);
  // A stopped record stays until its content is deleted, without a time limit.
  const isLeft = record.phase === WorkspacePhase.STOPPED && isDisposed(record) && !isKept(record);
  if (isLeft && stoppedMs !== undefined)
    times.push(presentTime(stoppedMs, observation) + observation.settings.stoppedRetentionSeconds * 1000);
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
      failed(record, `content initialization failed: ${record.contentMessage}${olderBackupText(record)}`),
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
  const timeout = `${timeoutText(over, nowMs)}${unfinishedContentText(record)}`;
  return stopped(withConditions(record, { timeout }), "time-out", nowMs);
}

/**
 * Returns the time at which the current step of the stop exceeds its limit; undefined if no
 * remaining step has a limit.
 */
function stoppingLimitMs(record: InstanceRecord, observation: Observation): number | undefined {
  const stoppingMs = toEpochMs(record.stoppingSince);
  const { stoppingSeconds, contentFinalizationSeconds } = observation.settings.timeouts;
  if (stoppingMs === undefined) return undefined;
  const sinceMs = presentTime(stoppingMs, observation);
  if (hasPod(record)) return sinceMs + stoppingSeconds * 1000;
  return needsSaving(record) ? sinceMs + contentFinalizationSeconds * 1000 : undefined;
}

/**
 * Reports a stop that takes too long as a failure. The stop continues: content is never deleted
 * because of a time-out.
 */
function withStoppingLimits(record: InstanceRecord, observation: Observation): InstanceRecord {
  const limitMs = stoppingLimitMs(record, observation);
  if (limitMs === undefined || observation.nowMs < limitMs) return record;
  if (hasPod(record))
    return failed(record, `the pod did not stop in time on node ${record.node}; the stop continues`);
  const why = finalTransferOf(record)?.message ?? "";
  return failed(
    record,
    `the final backup did not complete in time${why === "" ? "" : `: ${why}`}; the coordinator keeps trying`,
  );
}

function withPhase(record: InstanceRecord, observation: Observation): InstanceRecord {
  const phase = phaseOf(record, observation);
  if (phase === record.phase || (RANK[phase] ?? 0) < (RANK[record.phase] ?? 0)) return record;
  const at = toTimestamp(observation.nowMs);
  const moved = { ...record, phase, interruptedSince: undefined };
  switch (phase) {
    case WorkspacePhase.RUNNING:
      return { ...moved, runningSince: record.runningSince ?? at };
    case WorkspacePhase.INTERRUPTED:
      return { ...moved, interruptedSince: at };
    case WorkspacePhase.STOPPING:
      return { ...moved, stoppingSince: at };
    case WorkspacePhase.STOPPED:
      return { ...moved, stoppedAt: at, stoppingSince: record.stoppingSince ?? at };
    default:
      return moved;
  }
}

function phaseOf(record: InstanceRecord, observation: Observation): WorkspacePhase {
  if (record.stop !== undefined)
    return hasEnded(record, observation) ? WorkspacePhase.STOPPED : WorkspacePhase.STOPPING;
  if (record.runningSince !== undefined)
    return isInterrupted(observation) ? WorkspacePhase.INTERRUPTED : WorkspacePhase.RUNNING;
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
 * Reports whether the node, and therefore the connection to the workspace, is away. After a start
 * of the coordinator each node has three heartbeats to connect before it counts as away.
 */
function isInterrupted(observation: Observation): boolean {
  const { node, nowMs } = observation;
  return node?.ready === false && (node.seen || nowMs >= reconnectedMs(observation));
}

/**
 * Reports whether the instance has ended: no container runs, the content is saved or did not need
 * to be, and the node has deleted it. A node that is away may delete it later.
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
