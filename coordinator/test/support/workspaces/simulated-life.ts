import type { Random } from "@forage/common/random";
import { StopWorkspacePolicy, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import {
  ActivityRecord,
  BackupRecord as BackupCodec,
  type BackupRecord,
  InstanceRecord,
  type TransferRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind } from "@forage/proto/forage/workspaces/v1/workspaces";
import { decodeRecord } from "../../../src/model/codec.ts";
import { toEpochMs, toTimestamp } from "../../../src/model/timestamp.ts";
import { confirmTransfer } from "../../../src/workspaces/confirm.ts";
import { transferObject } from "../../../src/workspaces/content-names.ts";
import { applyReport } from "../../../src/workspaces/node/apply-report.ts";
import { orderOf } from "../../../src/workspaces/node/order.ts";
import { nextChangeMs } from "../../../src/workspaces/phase/advance.ts";
import { stopped } from "../../../src/workspaces/phase/conditions.ts";
import type { Observation } from "../../../src/workspaces/phase/observation.ts";
import { planWorkspace, type WorkspacePlan, withTransfer } from "../../../src/workspaces/phase/plan.ts";
import { versioned } from "../../../src/workspaces/records.ts";
import { WORKSPACES_SCHEMA } from "../../../src/workspaces/settings.ts";
import { checkLimits } from "./life-limits.ts";
import { broken, checkChange, checkDeletion, checkPointer, checkRecord } from "./life-rules.ts";
import { SimulatedNode } from "./simulated-node.ts";
import { SimulatedPod } from "./simulated-pod.ts";
import { SimulatedStore } from "./simulated-store.ts";

export const SETTINGS = WORKSPACES_SCHEMA.parse({ enabled: true });
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/**
 * The most consecutive evaluations that may change the record, the same as the reconciler's limit.
 */
const MAX_ROUNDS = 10;

/**
 * One workspace with its node, its pod and the content store, as plain values. The decisions are
 * those of the real code. Every message can be delayed or repeated, and every transaction can be
 * lost before it is stored.
 */
export class SimulatedLife {
  record: InstanceRecord;
  readonly #random: Random;
  readonly #events: string[] = [];
  readonly #store = new SimulatedStore();
  readonly #node: SimulatedNode;
  readonly #pod = new SimulatedPod();
  readonly #transferIds = new Set<string>();
  #backup: BackupRecord | undefined;
  #backupRevision = 0;
  #nodeState: "up" | "away" | "removed" = "up";
  #activity: ActivityRecord | undefined;
  #customMs: number | undefined;
  #nowMs = 1_000_000_000;
  #upSinceMs = 0;
  #revision = 1;
  #releases = 0;
  #isDeleted = false;
  #lostAtDisk: number | undefined;

  constructor(random: Random, type: WorkspaceType) {
    this.#random = random;
    this.#node = new SimulatedNode(random, this.#store);
    const hasTimeout = random.chance(0.3);
    if (hasTimeout) this.#customMs = 45 * MINUTE_MS;
    this.record = InstanceRecord.fromPartial({
      id: "instance",
      type,
      metadata: { owner: "owner", metaId: "meta" },
      spec: { workspaceImage: "image:1", timeout: hasTimeout ? "45m" : "" },
      phase: WorkspacePhase.PENDING,
      conditions: {},
      namespace: "workspaces",
      createdAt: toTimestamp(this.#nowMs),
      statusVersion: 1n << 40n,
    });
  }

  get trace(): string {
    return this.#events.join("\n");
  }

  get isStopped(): boolean {
    return this.record.phase === WorkspacePhase.STOPPED;
  }

  /** Executes one random event. */
  step(): void {
    const r = this.#random;
    const spoils = this.record.transfers.some(
      (it) => it.archive !== undefined && it.finishedAt === undefined,
    );
    const events: readonly (readonly [number, string, () => void])[] = [
      [6, "reconcile", () => this.#reconcile(true)],
      [2, "reconcile, and crash before it is stored", () => this.#reconcile(false)],
      [4, "pod", () => this.#movePod()],
      [5, "order", () => this.#takeOrder()],
      [6, "node works", () => this.#work()],
      [6, "report", () => this.#deliver()],
      [1, "report twice", () => this.#deliver(true)],
      [2, "container changes the content", () => this.#change()],
      [1, "activity", () => this.#markActive()],
      [1, "time passes", () => this.#pass(r.below(r.chance(0.1) ? 5_000_000 : 900_000))],
      [r.chance(0.1) ? 1 : 0, "stop request", () => this.#requestStop()],
      [r.chance(0.1) ? 1 : 0, "a new time-out", () => this.#setTimeout()],
      [r.chance(0.4) ? 1 : 0, "backup or snapshot request", () => this.#requestTransfer()],
      [r.chance(0.05) ? 1 : 0, "container exits", () => this.#pod.exit(r.below(2))],
      [r.chance(0.1) ? 1 : 0, "coordinator starts again", () => this.#restart()],
      [r.chance(0.1) ? 1 : 0, "node leaves or returns", () => this.#toggleNode()],
      [r.chance(0.1) ? 1 : 0, "agent forgets its transfers", () => this.#node.forgetTransfers()],
      [r.chance(0.03) ? 1 : 0, "node loses its disk", () => this.#loseDisk()],
      [r.chance(0.01) ? 1 : 0, "node is removed", () => this.#removeNode()],
      [spoils ? 3 : 0, "the content store spoils an archive that is not confirmed", () => this.#spoil()],
    ];
    const total = events.reduce((sum, [weight]) => sum + weight, 0);
    let at = r.below(total);
    for (const [weight, name, run] of events) {
      at -= weight;
      if (at >= 0) continue;
      this.#events.push(name);
      run();
      break;
    }
    this.#check();
  }

  /** Runs everything to its end with a working node, by a stop request or by a time-out. */
  finish(): void {
    if (this.#nodeState === "away") this.#toggleNode();
    if (this.#random.chance(0.7)) this.#requestStop();
    else this.#pass(40 * HOUR_MS);
    for (let round = 0; round < 200 && !this.isStopped; round++) this.#settle();
    if (!this.isStopped) broken(`it does not stop: ${this.record.message}`);
    for (let round = 0; round < 20; round++) this.#settle();
    this.#pass(SETTINGS.stoppedRetentionSeconds * 1000);
    for (let round = 0; round < 5; round++) this.#settle();
    const { contentKept, nodeLost, node } = this.record;
    const mustStay = contentKept && !nodeLost;
    if (this.#isDeleted === mustStay) broken("a stopped workspace stays, or goes with kept content");
    if (this.#releases !== 1) broken(`the meta id was released ${this.#releases} times`);
    const isLeft = this.#node.stage !== ContentStage.DISPOSED && this.#nodeState === "up" && node !== "";
    if (isLeft && !contentKept && !nodeLost) broken("the content stays on the node");
  }

  #settle(): void {
    this.#reconcile(true);
    this.#movePod();
    this.#takeOrder();
    this.#work(true);
    while (this.#node.hasReports && this.#nodeState === "up") this.#deliver();
    this.#check();
  }

  #observe(nowMs = this.#nowMs): Observation {
    return {
      pod: this.#pod.entry(this.#node.stage === ContentStage.READY),
      node:
        this.#nodeState === "removed"
          ? undefined
          : { ready: this.#nodeState === "up", message: "no heartbeat", revoked: false, seen: true },
      activity: this.#activity,
      unschedulable: "",
      nowMs,
      upSinceMs: this.#upSinceMs,
      since: (atMs) => atMs,
      settings: SETTINGS,
    };
  }

  #plan(nowMs = this.#nowMs): WorkspacePlan {
    return planWorkspace(this.record, this.#observe(nowMs), transferObject);
  }

  #reconcile(isStored: boolean): void {
    if (this.#isDeleted) return;
    const plan = this.#plan();
    checkLimits(this.record, plan.record, {
      nowMs: this.#nowMs,
      upSinceMs: this.#upSinceMs,
      activity: this.#activity,
      customMs: this.#customMs,
    });
    let after = plan.record;
    const effects: (() => void)[] = [];
    for (const step of plan.steps) {
      if (step.type === "create-pod") {
        after = { ...after, podCreated: true, podName: "ws-instance", podUid: "uid" };
        effects.push(() => this.#pod.create(this.record));
      }
      if (step.type === "stop-pod") effects.push(() => this.#pod.stop(this.record, step.graceSeconds));
      if (step.type === "forget-pod") effects.push(() => this.#pod.end());
      if (step.type === "confirm-transfer") {
        const { record, writes } = this.#confirm(after, step.transfer);
        after = record;
        for (const op of writes.ops ?? [])
          if (op.type === "put" && op.key.startsWith("workspaces/backups/"))
            effects.push(() => this.#movePointer(decodeRecord(BackupCodec, op.key, op.value)));
      }
      if (step.type === "release-meta-id") effects.push(() => this.#release());
      if (step.type === "delete-instance") effects.push(() => this.#delete());
    }
    if (!isStored) return;
    if (this.record.podGone && this.record.podGoneVersion === 0n)
      after = { ...after, podGoneVersion: BigInt(this.#revision) };
    for (const effect of effects) effect();
    this.#put(after);
    this.#checkRest();
  }

  #comesToRest(): boolean {
    let { record } = this;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const next = planWorkspace(record, this.#observe(), transferObject).record;
      if (next === record) return true;
      record = next;
    }
    return false;
  }

  /**
   * Checks that nothing changes without an event before the timer's time, and that something
   * changes then.
   */
  #checkRest(): void {
    if (!this.#comesToRest()) broken("evaluations keep changing the record");
    const again = this.#plan();
    if (again.record !== this.record || again.steps.length > 0) return;
    const nextMs = nextChangeMs(this.record, this.#observe());
    const restMs = nextMs === undefined ? this.#nowMs + 10_000 * HOUR_MS : nextMs - 1;
    if (restMs < this.#nowMs) broken("a deadline has passed, and nothing changes");
    const resting = this.#plan(restMs);
    if (resting.record !== this.record || resting.steps.length > 0)
      broken("the record changes by time alone, before the timer");
    if (nextMs === undefined) return;
    const due = this.#plan(nextMs);
    if (due.record === this.record && due.steps.length === 0) broken("the timer changes nothing");
  }

  #confirm(record: InstanceRecord, transfer: TransferRecord) {
    const backup = this.#backup && { key: "", revision: this.#backupRevision, record: this.#backup };
    return confirmTransfer({
      ...{ record, transfer, backup, nowMs: this.#nowMs },
      stored: this.#store.stat(transfer.object),
      storeName: "main",
      generations: 3,
      order: BigInt(this.#revision),
    });
  }

  #movePointer(backup: BackupRecord): void {
    this.#backup = backup;
    this.#backupRevision += 1;
    const newest = this.#store.versionOf(backup.generations[0]?.archive?.object ?? "");
    if (this.#lostAtDisk !== undefined && newest !== undefined && newest.disk >= this.#lostAtDisk)
      broken("a backup of refilled content hides the good ones");
    checkPointer(backup, this.#store, 3);
  }

  #release(): void {
    this.#releases += 1;
  }

  #delete(): void {
    this.#isDeleted = true;
    const waitedMs = this.#nowMs - (toEpochMs(this.record.stoppedAt) ?? this.#nowMs);
    if (waitedMs < SETTINGS.stoppedRetentionSeconds * 1000) broken("the record was deleted too early");
  }

  #put(after: InstanceRecord): void {
    if (after === this.record) return;
    const before = this.record;
    this.#revision += 1;
    this.record = versioned(before, after, 1);
    checkChange(before, this.record);
    for (const { id } of this.record.transfers) {
      if (before.transfers.some((transfer) => transfer.id === id)) continue;
      if (this.#transferIds.has(id)) broken(`transfer ${id} is ordered again under its old id`);
      this.#transferIds.add(id);
    }
  }

  #movePod(): void {
    this.#pod.move({
      isUp: this.#nodeState === "up",
      isRemoved: this.#nodeState === "removed",
      hasContent: this.#node.stage === ContentStage.READY,
    });
  }

  #takeOrder(): void {
    if (this.#nodeState !== "up" || this.record.node === "" || this.#isDeleted) return;
    this.#node.receive({ ...orderOf(this.record, undefined, SETTINGS), version: BigInt(this.#revision) });
  }

  #work(mustSucceed = false): void {
    if (this.#nodeState !== "up") return;
    const { transfers } = orderOf(this.record, undefined, SETTINGS);
    const disposed = this.#node.work({
      podRuns: this.#pod.isRunning,
      mustSucceed,
      nowMs: this.#nowMs,
      accepts: (transferId) => transfers.some(({ id }) => id === transferId),
    });
    if (disposed)
      checkDeletion(this.record, {
        version: this.#node.version,
        lostAtDisk: this.#lostAtDisk,
        stored: this.#store.versions(),
        newest: this.#store.versionOf(this.#backup?.generations[0]?.archive?.object ?? ""),
      });
  }

  #deliver(again = false): void {
    if (this.#nodeState !== "up") return;
    const report = this.#node.nextReport(again);
    if (report !== undefined) this.#put(applyReport(this.record, report, 0n));
  }

  #change(): void {
    if (this.#pod.isRunning) this.#node.change();
  }

  #markActive(): void {
    this.#activity = ActivityRecord.fromPartial({
      lastActivity: toTimestamp(this.#nowMs),
      closed: this.#random.chance(0.3),
    });
  }

  #pass(ms: number): void {
    this.#nowMs += ms;
  }

  #restart(): void {
    this.#pass(this.#random.below(3 * HOUR_MS));
    this.#upSinceMs = this.#nowMs;
  }

  #requestStop(): void {
    if (this.record.stop !== undefined) return;
    const ordered = stopped(this.record, "request", this.#nowMs);
    const policy = this.#random.chance(0.5) ? StopWorkspacePolicy.NORMALLY : StopWorkspacePolicy.IMMEDIATELY;
    this.#put({ ...ordered, stop: ordered.stop && { ...ordered.stop, policy } });
  }

  #setTimeout(): void {
    if (this.record.stop !== undefined) return;
    this.#customMs = 10 * MINUTE_MS;
    const spec = this.record.spec && { ...this.record.spec, timeout: "10m" };
    this.#put({ ...this.record, spec, customTimeout: "10m", closedTimeoutOff: true });
  }

  #requestTransfer(): void {
    const { record } = this;
    if (record.stop !== undefined || record.phase !== WorkspacePhase.RUNNING || record.transfers.length > 4)
      return;
    const isBackup = record.type === WorkspaceType.REGULAR && this.#random.chance(0.5);
    const [kind, prefix] = isBackup ? [TransferKind.BACKUP, "backup"] : [TransferKind.SNAPSHOT, "snapshot"];
    this.#put(withTransfer(record, kind, { prefix, nowMs: this.#nowMs, nameOf: transferObject }));
  }

  #toggleNode(): void {
    if (this.#nodeState !== "removed") this.#nodeState = this.#nodeState === "up" ? "away" : "up";
  }

  #loseDisk(): void {
    if (this.#node.stage !== ContentStage.READY || this.record.stop !== undefined) return;
    const { contentEverReady } = this.record;
    this.#node.loseDisk();
    if (contentEverReady) this.#lostAtDisk ??= this.#node.version.disk;
  }

  #removeNode(): void {
    this.#nodeState = "removed";
    this.#pod.endWithNode();
  }

  /**
   * Damages an object to which no backup refers; losing others would violate the store's contract.
   */
  #spoil(): void {
    const named = new Set(this.#backup?.generations.map(({ archive }) => archive?.object));
    const open = this.record.transfers.filter(({ finishedAt }) => finishedAt === undefined);
    const objects = open.map(({ object }) => object).filter((object) => !named.has(object));
    if (this.#store.spoil(objects, this.#random)) this.#node.forgetTransfers();
  }

  #check(): void {
    const { record } = this;
    const podEnded = this.#pod.hasEnded;
    checkRecord(record, { podEnded, nodeRemoved: this.#nodeState === "removed", backup: this.#backup });
    const { dispose } = orderOf(record, undefined, SETTINGS);
    if (dispose && record.stop === undefined) broken("the order deletes content of a workspace that runs");
    if (dispose && !podEnded) broken("the order deletes content that a pod may use");
  }
}
