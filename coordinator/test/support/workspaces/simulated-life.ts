import { WorkspaceConditionBool, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import {
  ActivityRecord,
  BackupRecord as BackupCodec,
  type BackupRecord,
  InstanceRecord,
  type TransferRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import {
  ContentStage,
  TransferReport,
  TransferState,
  type WorkspaceOrder,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { decodeRecord } from "../../../src/model/codec.ts";
import { toTimestamp } from "../../../src/model/timestamp.ts";
import type { PodEntry } from "../../../src/state/entries.ts";
import { confirmTransfer } from "../../../src/workspaces/confirm.ts";
import type { StoredObject } from "../../../src/workspaces/content/content-store.ts";
import { transferObject } from "../../../src/workspaces/content-names.ts";
import { applyReport } from "../../../src/workspaces/node/apply-report.ts";
import { orderOf } from "../../../src/workspaces/node/order.ts";
import { stopped } from "../../../src/workspaces/phase/conditions.ts";
import type { Observation } from "../../../src/workspaces/phase/observation.ts";
import { planWorkspace } from "../../../src/workspaces/phase/plan.ts";
import { versioned } from "../../../src/workspaces/records.ts";
import { WORKSPACES_SCHEMA } from "../../../src/workspaces/settings.ts";
import { aPod } from "../entries.ts";
import type { Random } from "../random.ts";

const SETTINGS = WORKSPACES_SCHEMA.parse({ enabled: true });

/** A pod on its way from creation to removal. */
type PodStage = "none" | "unbound" | "bound" | "running" | "exited" | "gone";

/** The content of the node: the number of changes that the container made to it. */
interface NodeContent {
  stage: ContentStage;
  changes: number;
  readonly transfers: Map<string, TransferReport>;
}

/**
 * One workspace with its node, its pod and the content store, as plain values. The decisions are those of the real code; every
 * message can be delayed or repeated, and every transaction can be lost before it is stored.
 */
export class SimulatedLife {
  record: InstanceRecord;
  readonly #random: Random;
  readonly #events: string[] = [];
  readonly #phases: WorkspacePhase[] = [];
  readonly #objects = new Map<string, { readonly stored: StoredObject; readonly changes: number }>();
  #backup: BackupRecord | undefined;
  #backupRevision = 0;
  #pod: PodStage = "none";
  #podStopping = false;
  #node: "up" | "away" | "removed" = "up";
  #content: NodeContent = { stage: ContentStage.UNSPECIFIED, changes: 0, transfers: new Map() };
  #activity: ActivityRecord | undefined;
  #order: WorkspaceOrder | undefined;
  #reports: WorkspaceReport[] = [];
  #nowMs = 1_000_000_000;
  #exitCode = 0;
  #revision = 1;

  constructor(random: Random, type: WorkspaceType) {
    this.#random = random;
    this.record = InstanceRecord.fromPartial({
      id: "instance",
      type,
      metadata: { owner: "owner", metaId: "meta" },
      spec: { workspaceImage: "image:1" },
      phase: WorkspacePhase.PENDING,
      conditions: {},
      namespace: "workspaces",
      createdAt: toTimestamp(this.#nowMs),
    });
  }

  get trace(): string {
    return this.#events.join("\n");
  }

  get isStopped(): boolean {
    return this.record.phase === WorkspacePhase.STOPPED;
  }

  get nodeIsUp(): boolean {
    return this.#node === "up";
  }

  /** One random event. */
  step(): void {
    const r = this.#random;
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
      [1, "time passes", () => this.#pass(r.below(900_000))],
      [r.chance(0.1) ? 1 : 0, "stop request", () => this.#requestStop()],
      [r.chance(0.05) ? 1 : 0, "container exits", () => this.#exit()],
      [r.chance(0.1) ? 1 : 0, "node leaves or returns", () => this.#toggleNode()],
      [r.chance(0.01) ? 1 : 0, "node is removed", () => this.#removeNode()],
      [r.chance(0.3) ? 1 : 0, "content store loses the newest object", () => this.#loseUnconfirmed()],
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

  /** Runs everything to its end, with a node that works and a stop request. */
  finish(): void {
    if (this.#node === "away") this.#toggleNode();
    this.#requestStop();
    for (let round = 0; round < 200 && !this.isStopped; round++) {
      this.#reconcile(true);
      this.#movePod();
      this.#takeOrder();
      this.#work(true);
      while (this.#reports.length > 0 && this.#node === "up") this.#deliver();
      this.#check();
    }
  }

  #observe(): Observation {
    return {
      pod: this.#podEntry(),
      node:
        this.#node === "removed"
          ? undefined
          : { ready: this.#node === "up", message: "no heartbeat", revoked: false },
      activity: this.#activity,
      unschedulable: "",
      nowMs: this.#nowMs,
      upSinceMs: 0,
      settings: SETTINGS,
    };
  }

  #podEntry(): PodEntry | undefined {
    if (this.#pod === "none" || this.#pod === "gone") return undefined;
    const isReady = this.#pod === "running" && this.#content.stage === ContentStage.READY;
    const exited = this.#exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED;
    const entry = aPod({
      name: "ws-instance",
      namespace: "workspaces",
      kind: "workspace",
      node: this.#pod === "unbound" ? "" : "n1",
      stopping: this.#podStopping,
      status: {
        phase: this.#pod === "exited" ? exited : isReady ? PodPhase.RUNNING : PodPhase.PENDING,
        ready: isReady,
      },
    });
    return { ...entry, record: { ...entry.record, uid: "uid" } };
  }

  #reconcile(isStored: boolean): void {
    const plan = planWorkspace(this.record, this.#observe(), transferObject);
    let after = plan.record;
    const effects: (() => void)[] = [];
    for (const step of plan.steps) {
      if (step.type === "create-pod") {
        after = { ...after, podCreated: true, podName: "ws-instance", podUid: "uid" };
        effects.push(() => {
          this.#pod = "unbound";
        });
      }
      if (step.type === "stop-pod") effects.push(() => this.#stopPod());
      if (step.type === "forget-pod") effects.push(() => this.#endPod());
      if (step.type === "confirm-transfer") {
        const { record, writes } = this.#confirm(after, step.transfer);
        after = record;
        for (const op of writes.ops ?? [])
          if (op.kind === "put" && op.key.startsWith("workspaces/backups/"))
            effects.push(() => {
              this.#backup = decodeRecord(BackupCodec, op.key, op.value);
              this.#backupRevision += 1;
            });
      }
    }
    if (!isStored) return;
    if (this.record.podGone && this.record.podGoneVersion === 0n)
      after = { ...after, podGoneVersion: BigInt(this.#revision) };
    for (const effect of effects) effect();
    this.#store(after);
  }

  #confirm(record: InstanceRecord, transfer: TransferRecord) {
    const backup = this.#backup && { key: "", revision: this.#backupRevision, record: this.#backup };
    return confirmTransfer({
      ...{ record, transfer, backup, nowMs: this.#nowMs },
      stored: this.#objects.get(transfer.object)?.stored,
      storeName: "main",
      generations: 3,
    });
  }

  #store(after: InstanceRecord): void {
    if (after === this.record) return;
    const before = this.record;
    this.#revision += 1;
    this.record = versioned(before, after, 1);
    const same =
      JSON.stringify([before.phase, before.message], plain) ===
      JSON.stringify([after.phase, after.message], plain);
    if (!same && this.record.statusVersion <= before.statusVersion)
      throw new Error("the status version did not grow");
    if (before.conditions?.failed && this.record.conditions?.failed !== before.conditions.failed)
      throw new Error("the reason of the failure changed");
    if (this.record.phase !== before.phase) this.#phases.push(this.record.phase);
  }

  #movePod(): void {
    if (this.#pod === "unbound" && !this.#podStopping)
      this.#pod = this.#node === "removed" ? "unbound" : "bound";
    else if (this.#node !== "up") return;
    else if (this.#podStopping) this.#endPod();
    else if (this.#pod === "bound" && this.#content.stage === ContentStage.READY) this.#pod = "running";
  }

  #stopPod(): void {
    this.#podStopping = true;
  }

  #endPod(): void {
    this.#pod = "gone";
  }

  #exit(): void {
    if (this.#pod !== "running") return;
    this.#exitCode = this.#random.below(2);
    this.#pod = "exited";
  }

  #takeOrder(): void {
    if (this.#node !== "up" || this.record.node === "") return;
    this.#order = { ...orderOf(this.record, undefined, SETTINGS), version: BigInt(this.#revision) };
    this.#tell();
  }

  /** The node does one piece of work of its order. */
  #work(mustSucceed = false): void {
    const [order, content, r] = [this.#order, this.#content, this.#random];
    if (this.#node !== "up" || order === undefined || content.stage === ContentStage.DISPOSED) return;
    const podRuns = this.#pod === "running";
    if (order.dispose && !podRuns) {
      content.stage = ContentStage.DISPOSED;
      this.#assertDeletable();
    } else if (content.stage === ContentStage.UNSPECIFIED) content.stage = ContentStage.INITIALIZING;
    else if (content.stage === ContentStage.INITIALIZING)
      content.stage = !mustSucceed && r.chance(0.1) ? ContentStage.FAILED : ContentStage.READY;
    else if (content.stage === ContentStage.READY) this.#transfer(order, mustSucceed);
    this.#tell();
  }

  #transfer({ transfers }: WorkspaceOrder, mustSucceed: boolean): void {
    const { transfers: done, changes } = this.#content;
    const next = transfers.find(({ id }) => done.get(id)?.state !== TransferState.DONE);
    if (next === undefined) return;
    if (!mustSucceed && this.#random.chance(0.3)) {
      done.set(
        next.id,
        TransferReport.fromPartial({ id: next.id, state: TransferState.RETRYING, message: "store away" }),
      );
      return;
    }
    const stored = {
      object: next.object,
      sizeBytes: 10 + changes,
      sha256: `sha-${changes}`,
      storedMs: this.#nowMs,
    };
    this.#objects.set(next.object, { stored, changes });
    const archive = { object: next.object, sizeBytes: BigInt(stored.sizeBytes), sha256: stored.sha256 };
    done.set(next.id, TransferReport.fromPartial({ id: next.id, state: TransferState.DONE, archive }));
  }

  #tell(): void {
    const { stage, transfers } = this.#content;
    this.#reports.push(
      WorkspaceReport.fromPartial({
        instanceId: "instance",
        stage,
        transfers: [...transfers.values()],
        orderVersion: this.#order?.version ?? 0n,
      }),
    );
    // A new stream begins with the present state.
    if (this.#reports.length > 3) this.#reports = this.#reports.slice(-1);
  }

  #deliver(again = false): void {
    if (this.#node !== "up") return;
    const report = again ? this.#reports[0] : this.#reports.shift();
    if (report === undefined) return;
    this.#store(applyReport(this.record, report));
  }

  #change(): void {
    if (this.#pod === "running" && this.#content.stage === ContentStage.READY) this.#content.changes += 1;
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

  #requestStop(): void {
    this.#store(stopped(this.record, "request", this.#nowMs));
  }

  #toggleNode(): void {
    if (this.#node !== "removed") this.#node = this.#node === "up" ? "away" : "up";
  }

  #removeNode(): void {
    this.#node = "removed";
    if (this.#pod !== "none" && this.#pod !== "unbound") this.#endPod();
  }

  /** Only an object that no pointer names: a store that loses others has no promise to keep. */
  #loseUnconfirmed(): void {
    const named = new Set(this.#backup?.generations.map(({ archive }) => archive?.object));
    const last = [...this.#objects.keys()].at(-1);
    const isConfirmed = this.record.transfers.some(
      ({ object, finishedAt }) => object === last && finishedAt !== undefined,
    );
    if (last === undefined || named.has(last) || isConfirmed) return;
    this.#objects.delete(last);
    for (const [id, report] of this.#content.transfers)
      if (report.archive?.object === last) this.#content.transfers.delete(id);
  }

  /** Content is deleted only once the newest of it is in the store, by the pointer or by a snapshot. */
  #assertDeletable(): void {
    const { type } = this.record;
    // No container ever changed it, so that nothing of it is new.
    if (this.#content.changes === 0 || type === WorkspaceType.IMAGEBUILD) return;
    const saved = [...this.#objects.values()].some(({ changes }) => changes === this.#content.changes);
    if (!saved) throw new Error("the node deletes content that was not saved");
    if (type !== WorkspaceType.REGULAR) return;
    const newest = this.#backup?.generations[0]?.archive?.object ?? "";
    if (this.#objects.get(newest)?.changes !== this.#content.changes)
      throw new Error("the node deletes content that the newest generation does not hold");
  }

  #check(): void {
    const { record } = this;
    const ranks = this.#phases.map((phase) => ORDER.indexOf(phase));
    if (ranks.some((rank, index) => rank < (ranks[index - 1] ?? -1)))
      throw new Error(`phases went back: ${this.#phases}`);
    if (this.#phases.filter((phase) => phase === WorkspacePhase.STOPPED).length > 1)
      throw new Error("STOPPED came twice");
    if (record.conditions?.finalBackupComplete === WorkspaceConditionBool.TRUE) {
      const newest = this.#backup?.generations[0]?.archive?.object ?? "";
      if (!this.#objects.has(newest)) throw new Error("a final backup is complete that is not in the store");
    }
    if (record.phase !== WorkspacePhase.STOPPED) return;
    if (this.#pod !== "gone" && this.#pod !== "none") throw new Error("STOPPED with a pod");
    if (!record.contentEverReady || record.type !== WorkspaceType.REGULAR || record.contentSafe) return;
    if (this.#node !== "removed") throw new Error("STOPPED without a backup");
    if (record.conditions?.failed === "") throw new Error("content was lost without a failure");
  }
}

const ORDER: readonly WorkspacePhase[] = [
  WorkspacePhase.PENDING,
  WorkspacePhase.CREATING,
  WorkspacePhase.INITIALIZING,
  WorkspacePhase.RUNNING,
  WorkspacePhase.STOPPING,
  WorkspacePhase.STOPPED,
];

function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
