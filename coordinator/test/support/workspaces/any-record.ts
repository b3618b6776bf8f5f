import type { Random } from "@forage/common/random";
import { WorkspaceConditionBool, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import {
  ActivityRecord,
  BackupRecord,
  type Generation,
  InstanceRecord,
  TransferRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import {
  ContentStage,
  TransferKind,
  TransferState,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { decodeRecord } from "../../../src/model/codec.ts";
import { toEpochMs, toTimestamp } from "../../../src/model/timestamp.ts";
import { confirmTransfer } from "../../../src/workspaces/confirm.ts";
import { applyReport } from "../../../src/workspaces/node/apply-report.ts";
import { orderOf } from "../../../src/workspaces/node/order.ts";
import { advance } from "../../../src/workspaces/phase/advance.ts";
import type { Observation } from "../../../src/workspaces/phase/observation.ts";
import { planWorkspace } from "../../../src/workspaces/phase/plan.ts";
import { versioned } from "../../../src/workspaces/records.ts";
import { WORKSPACES_SCHEMA } from "../../../src/workspaces/settings.ts";
import { aPod } from "../entries.ts";
import { broken, checkChange } from "./life-rules.ts";

/*
 * Rules of single decisions that hold for every record, including records that the present code
 * never produces.
 */

const SETTINGS = WORKSPACES_SCHEMA.parse({ enabled: true });
const NOW_MS = 10_000_000_000;
const QUOTA_BYTES = 100n;
const PHASES = [
  WorkspacePhase.PENDING,
  WorkspacePhase.CREATING,
  WorkspacePhase.INITIALIZING,
  WorkspacePhase.RUNNING,
  WorkspacePhase.INTERRUPTED,
  WorkspacePhase.STOPPING,
  WorkspacePhase.STOPPED,
];
const TYPES = [WorkspaceType.REGULAR, WorkspaceType.PREBUILD, WorkspaceType.PROBE, WorkspaceType.IMAGEBUILD];
const STAGES = [
  ContentStage.UNSPECIFIED,
  ContentStage.INITIALIZING,
  ContentStage.READY,
  ContentStage.FAILED,
  ContentStage.DISPOSED,
];
const STATES = [
  TransferState.UNSPECIFIED,
  TransferState.RUNNING,
  TransferState.DONE,
  TransferState.RETRYING,
  TransferState.FAILED,
];
const ARCHIVES = ["a", "b"].map((sha256) => ({ object: "object", sizeBytes: 5n, sha256 }));

/** Throws the rule that a decision about a random record violates. */
export function checkAnyRecord(random: Random): void {
  const record = aRecord(random);
  checkAdvance(record, random);
  checkKept(record, random);
  checkOrder(record);
  checkReport(record, random);
  checkConfirm(record, random);
}

function checkAdvance(record: InstanceRecord, random: Random): void {
  const after = versioned(record, advance(record, anObservation(random)), 1);
  checkChange(record, after);
  if (record.phase === WorkspacePhase.STOPPED && after.statusVersion !== record.statusVersion)
    broken("the status of a stopped workspace changes");
  checkLoss(record, after);
  if (after.phase === WorkspacePhase.STOPPING && after.stop === undefined && record.phase !== after.phase)
    broken("it stops without a cause");
  if (
    after.phase === WorkspacePhase.STOPPED &&
    record.phase !== after.phase &&
    after.podCreated &&
    !after.podGone
  )
    broken("STOPPED with a pod");
  if (after.phase === WorkspacePhase.STOPPED && record.phase !== after.phase && !isDecided(after))
    broken("STOPPED before the node has reported whether containers had the content");
}

/**
 * Reports whether it is known whether a container used the content, or no decision about it is
 * left.
 */
function isDecided(record: InstanceRecord): boolean {
  const { node, nodeLost, contentKept, contentEverReady, contentStage, podCreated, podGoneAcknowledged } =
    record;
  if (node === "" || nodeLost || contentKept || contentEverReady || !podCreated) return true;
  return (
    contentStage === ContentStage.FAILED || contentStage === ContentStage.DISPOSED || podGoneAcknowledged
  );
}

/** Checks that content of a stopped workspace that a retry could not save is kept. */
function checkKept(record: InstanceRecord, random: Random): void {
  const { phase, contentSafe, transfers } = record;
  const final = transfers.findLast(({ id }) => id.startsWith("final"));
  if (phase !== WorkspacePhase.STOPPED || contentSafe || final?.state !== TransferState.FAILED) return;
  const planned = planWorkspace(record, anObservation(random), (_, id) => `object-${id}`).record;
  if (!planned.contentKept) broken("a retry has failed, and its content does not count as kept");
}

/** Checks that content that must be saved is saved, or its loss is reported as a failure. */
function checkLoss(before: InstanceRecord, after: InstanceRecord): void {
  if (before.phase === WorkspacePhase.STOPPED || after.contentKept || after.contentLost) return;
  if (!after.contentEverReady || after.contentSafe || after.type === WorkspaceType.IMAGEBUILD) return;
  if (after.nodeLost && !before.nodeLost && after.conditions?.failed === "")
    broken("content was lost with its node without a failure");
  if (after.phase === WorkspacePhase.STOPPED && !after.nodeLost) broken("STOPPED without a backup");
}

function checkOrder(record: InstanceRecord): void {
  const { dispose, transfers, contentComplete, restore } = orderOf(record, undefined, SETTINGS);
  if (!dispose && restore?.object !== record.restore?.object)
    broken("the order fills content with something else than the backup that the start named");
  if (contentComplete !== (record.contentStage === ContentStage.READY))
    broken("the order does not say whether the content is complete");
  const open = record.transfers.filter(
    ({ state, finishedAt }) =>
      finishedAt === undefined && state !== TransferState.DONE && state !== TransferState.FAILED,
  );
  if (open.map(({ id }) => id).join() !== transfers.map(({ id }) => id).join())
    broken("the order has other transfers than those that are still to be made");
  if (!dispose) return;
  if (record.stop === undefined) broken("the order deletes content of a workspace that is not stopped");
  if (record.podCreated && !record.podGone) broken("the order deletes content that a pod may use");
  if (record.contentKept) broken("the order deletes content that could not be saved");
  const mayBeUsed = record.podCreated && !record.podGoneAcknowledged;
  if (!record.contentEverReady && mayBeUsed && record.contentStage !== ContentStage.FAILED)
    broken("the order deletes content that a container may have used");
  if (record.nodeLost || record.contentLost || !record.contentEverReady) return;
  if (open.length > 0) broken("the order deletes content with transfers under way");
  if (record.type !== WorkspaceType.IMAGEBUILD && !record.contentSafe)
    broken("the order deletes content that is not saved");
}

function checkReport(record: InstanceRecord, random: Random): void {
  const report = aReport(record, random);
  const after = applyReport(record, report, QUOTA_BYTES);
  checkChange(record, versioned(record, after, 1));
  // The loss of content is reported first, and its end with the next report.
  const again = applyReport(after, report, QUOTA_BYTES);
  if (applyReport(again, report, QUOTA_BYTES) !== again) broken("the same report keeps changing the record");
  if (after.stop !== record.stop || after.phase !== record.phase)
    broken("a report changes the phase or the stop");
  if (after.contentEverReady && !record.contentEverReady && record.podGoneAcknowledged)
    broken("content that became complete without a pod counts as used, and an unused one would be saved");
  const isAnswer = record.podGoneVersion !== 0n && report.orderVersion >= record.podGoneVersion;
  if (after.podGoneAcknowledged !== (record.podGoneAcknowledged || isAnswer))
    broken("the node's knowledge of the pod's end is not what it reported");
  if (after.transfers.some(({ id, state, archive }) => isDoneWithout(archive, state) && wasOpen(record, id)))
    broken("a transfer is done without an archive");
  const ordered = orderOf(record, undefined, SETTINGS).dispose;
  if (after.contentStage === ContentStage.DISPOSED && record.contentStage !== after.contentStage)
    if (record.stop === undefined) broken("the content of a workspace that runs counts as deleted");
  const isGone = report.stage === ContentStage.INITIALIZING || report.stage === ContentStage.DISPOSED;
  const isLoss = record.contentStage === ContentStage.READY && record.contentEverReady && isGone && !ordered;
  if (isLoss && !after.contentLost) broken("a lost disk is not noticed");
  if (after.contentLost && !record.contentLost && !isLoss) broken("content counts as lost that is there");
}

/**
 * Checks that content saved after the stop is ordered between the backups of earlier and of later
 * instances.
 */
function checkOrderOfLate(generations: readonly Generation[], podGoneVersion: bigint): void {
  const at = generations.findIndex(({ archive }) => archive?.object === "object");
  const saved = generations[at];
  if (saved === undefined) return;
  if (saved.order !== podGoneVersion)
    broken("content that was saved late has another order than its instance");
  const rankOf = ({ order, at: time }: Generation): number =>
    podGoneVersion === 0n ? (toEpochMs(time) ?? 0) : Number(order);
  for (const [index, other] of generations.entries()) {
    const isEarlier = other.instanceId === "instance" || rankOf(other) <= rankOf(saved);
    if (index !== at && isEarlier !== index > at) broken("content that was saved late hides newer backups");
  }
}

function isDoneWithout(archive: TransferRecord["archive"], state: TransferState): boolean {
  return state === TransferState.DONE && archive === undefined;
}

function wasOpen({ transfers }: InstanceRecord, id: string): boolean {
  return transfers.some((it) => it.id === id && it.state !== TransferState.DONE);
}

function checkConfirm(record: InstanceRecord, random: Random): void {
  const archive = random.pick(ARCHIVES);
  const done = TransferRecord.fromPartial({
    id: random.pick(["final-9", "backup-9", "snapshot-9"]),
    kind: random.pick([TransferKind.FINAL_BACKUP, TransferKind.BACKUP, TransferKind.SNAPSHOT]),
    object: "object",
    state: TransferState.DONE,
    ...(random.chance(0.9) && { archive }),
  });
  const stored = random.chance(0.1)
    ? undefined
    : {
        object: random.pick(["object", "object", "other"]),
        sizeBytes: random.pick([5, 5, 6]),
        sha256: random.pick(["a", "b"]),
        storedMs: NOW_MS,
      };
  const before = { ...record, transfers: [...record.transfers, done], contentSafe: false };
  const isOrdered = record.podGoneVersion !== 0n;
  const older = Array.from({ length: random.below(5) }, (_, index) => ({
    archive: { object: `older-${index}`, sizeBytes: 1n, sha256: "c" },
    // If orders are known, clocks may have been wrong.
    at: toTimestamp(NOW_MS - (isOrdered ? random.below(10_000_000) : index * 3_000_000)),
    order: isOrdered ? BigInt(100 - index * 10) : 0n,
    instanceId: random.pick(["another", "another", "instance"]),
  }));
  const pointer = BackupRecord.fromPartial({ generations: older });
  const { record: after, writes } = confirmTransfer({
    ...{
      record: before,
      transfer: done,
      stored,
      storeName: "main",
      generations: 3,
      nowMs: NOW_MS,
      order: 200n,
    },
    backup: random.chance(0.3) ? undefined : { key: "", revision: 7, record: pointer },
  });
  const hasImage =
    done.archive !== undefined &&
    stored?.object === "object" &&
    stored.sizeBytes === 5 &&
    stored.sha256 === done.archive.sha256;
  const ops = writes.ops ?? [];
  if (hasImage !== ops.length > 0) broken("what is confirmed is not what the store holds");
  if (!hasImage && after.contentSafe) broken("content counts as safe that the store does not hold");
  if (!hasImage && after.transfers.some(({ id, finishedAt }) => id === done.id && finishedAt !== undefined))
    broken("a transfer ends well without its archive");
  if (hasImage && after.contentSafe !== done.id.startsWith("final"))
    broken("only the final transfer makes content safe");
  for (const op of ops) {
    if (op.type !== "put" || !op.key.startsWith("workspaces/backups/")) continue;
    const { generations } = decodeRecord(BackupRecord, op.key, op.value);
    if (generations.length > 3) broken(`${generations.length} generations are kept`);
    const isLate = record.phase === WorkspacePhase.STOPPED;
    if (!isLate && generations[0]?.archive?.object !== "object")
      broken("the newest generation is not the first");
    if (!generations.some((it) => it.archive?.object === "object")) broken("what was saved is not kept");
    if (isLate) checkOrderOfLate(generations, record.podGoneVersion);
  }
  const isPointer = ops.some((op) => op.type === "put" && op.key.startsWith("workspaces/backups/"));
  if (isPointer !== (hasImage && done.kind !== TransferKind.SNAPSHOT)) broken("a snapshot moves the pointer");
  if (isPointer && (writes.compares ?? []).length === 0) broken("the pointer moves without a compare");
}

function aRecord(random: Random): InstanceRecord {
  const time = (): ReturnType<typeof toTimestamp> => toTimestamp(NOW_MS - random.below(10_000_000));
  const maybe = (): ReturnType<typeof toTimestamp> | undefined => (random.chance(0.5) ? time() : undefined);
  const bool = (): boolean => random.chance(0.4);
  const podCreated = random.chance(0.7);
  const phase = random.pick(PHASES);
  const transfers = Array.from({ length: random.below(3) }, (_, index) => aTransfer(index, random, maybe()));
  return InstanceRecord.fromPartial({
    id: "instance",
    type: random.pick(TYPES),
    metadata: { owner: "owner", metaId: "meta" },
    spec: { workspaceImage: "image:1" },
    phase,
    conditions: { failed: bool() ? "before" : "", finalBackupComplete: WorkspaceConditionBool.FALSE },
    createdAt: time(),
    ...{ podCreated, podUid: "uid-ws", podName: podCreated ? "ws" : "", podGone: podCreated && bool() },
    ...{ node: random.pick(["", "n1"]), nodeLost: random.chance(0.1) },
    ...{ contentStage: random.pick(STAGES), contentEverReady: bool(), contentSafe: bool() },
    ...{ contentKept: random.chance(0.1), contentLost: random.chance(0.1) },
    restore: bool() ? { object: "restored", sizeBytes: 5n, sha256: "a" } : undefined,
    ...{ podGoneVersion: random.pick([0n, 5n, 75n]), podGoneAcknowledged: bool() },
    transfers,
    stop: bool() ? { cause: "request", at: time() } : undefined,
    statusVersion: 1n << 40n,
    ...(phase === WorkspacePhase.RUNNING && { runningSince: time() }),
    ...(phase === WorkspacePhase.INTERRUPTED && { runningSince: time(), interruptedSince: time() }),
    ...(phase === WorkspacePhase.STOPPING && { runningSince: maybe(), stoppingSince: time() }),
    ...(phase === WorkspacePhase.STOPPED && { stoppingSince: time(), stoppedAt: time() }),
  });
}

function aTransfer(
  index: number,
  random: Random,
  finishedAt: ReturnType<typeof toTimestamp> | undefined,
): TransferRecord {
  const state = random.pick(STATES);
  const isDone = state === TransferState.DONE;
  return TransferRecord.fromPartial({
    id: `${random.pick(["final", "backup"])}-${index}`,
    kind: TransferKind.BACKUP,
    object: `object-${index}`,
    state,
    ...(isDone && { archive: random.pick(ARCHIVES), finishedAt }),
  });
}

function aReport({ transfers }: InstanceRecord, random: Random): WorkspaceReport {
  const reported = transfers.map(({ id }) => {
    const state = random.pick(STATES);
    const archive = state === TransferState.DONE && random.chance(0.9) ? random.pick(ARCHIVES) : undefined;
    return { id, state, archive, message: random.pick(["", "store away"]) };
  });
  return WorkspaceReport.fromPartial({
    instanceId: "instance",
    stage: random.pick(STAGES),
    transfers: reported,
    orderVersion: random.pick([1n, 9n]),
  });
}

function anObservation(random: Random): Observation {
  const pod = aPod({
    name: "ws",
    namespace: "workspaces",
    kind: "workspace",
    node: random.pick(["", "n1"]),
    stopping: random.chance(0.3),
    status: {
      phase: random.pick([PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED]),
      ready: random.chance(0.5),
    },
  });
  const activity = ActivityRecord.fromPartial({
    lastActivity: toTimestamp(NOW_MS - random.below(10_000_000)),
    closed: random.chance(0.5),
  });
  return {
    pod: random.chance(0.3) ? undefined : pod,
    node: random.chance(0.2)
      ? undefined
      : { ready: random.chance(0.7), message: "away", revoked: false, seen: random.chance(0.5) },
    activity: random.chance(0.5) ? activity : undefined,
    unschedulable: "",
    nowMs: NOW_MS,
    upSinceMs: 0,
    since: (atMs) => atMs,
    settings: SETTINGS,
  };
}
