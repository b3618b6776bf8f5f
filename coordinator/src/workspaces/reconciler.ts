import type { Log } from "@forage/common/log";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { ActingTime } from "../acting-time/acting-time.ts";
import { Loop } from "../control/loop.ts";
import type { UnschedulablePods } from "../control/placement/unschedulable-pods.ts";
import { CoordinatorError } from "../errors.ts";
import type { Vault } from "../objects/vault.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { confirmTransfer } from "./confirm.ts";
import type { ContentStore } from "./content/content-store.ts";
import { transferObject } from "./content-names.ts";
import { orderVersion } from "./node/orders.ts";
import { nextChangeMs } from "./phase/advance.ts";
import type { Observation } from "./phase/observation.ts";
import { planWorkspace, type WorkspacePlan } from "./phase/plan.ts";
import { PodWriter } from "./pod/pod-writer.ts";
import { releaseWrites, removalWrites } from "./removal.ts";
import type { WorkspaceSettings } from "./settings.ts";
import type { InstanceChange, InstanceEntry, WorkspaceView } from "./view.ts";
import { WORKSPACE_KIND } from "./workspace-kind.ts";
import type { ExtraWrites, WorkspaceWriter } from "./writer.ts";

export interface ReconcilerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly vault: Vault;
  readonly content: ContentStore;
  readonly settings: WorkspaceSettings;
  readonly clock: Clock;
  readonly time: ActingTime;
  readonly log: Log;
  /** The epoch of the store, which grows with each restore. */
  readonly epoch: number;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  readonly randomName: (length: number) => string;
  /** Resolves when pods may be created. */
  readonly started?: Promise<void> | undefined;
}

/** The most plans that one evaluation executes for an instance. The next evaluation continues. */
const MAX_ROUNDS = 10;
/**
 * The longest time between two evaluations of an instance, which bounds the delay after a missed
 * event.
 */
const MAX_WAIT_MS = 60_000;
/**
 * The interval of evaluations while a pod has no node: the reason for that changes without an
 * event.
 */
const PENDING_WAIT_MS = 5_000;
/** The interval of attempts to confirm an archive while the content store is unreachable. */
const CONTENT_RETRY_MS = 5_000;

/** Reconciles each workspace instance, from its request until its record is deleted. */
export class WorkspaceReconciler {
  readonly #options: ReconcilerOptions;
  readonly #pods: PodWriter;
  readonly #loop: Loop;
  readonly #unsubscribe: readonly (() => void)[];

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#pods = new PodWriter(options);
    this.#loop = new Loop({
      name: "workspace",
      reconcile: (id) => this.#reconcile(id),
      clock: options.clock,
      leastDelayMs: options.time.leastDelayMs,
      log: options.log,
      started: options.started,
    });
    this.#unsubscribe = [
      options.state.subscribe((changes) => this.#wakeFor(changes)),
      options.view.subscribe((changes) => this.#wakeForInstances(changes)),
    ];
    for (const { record } of options.view.instances()) this.#loop.wake(record.id);
  }

  wake(id: string): void {
    this.#loop.wake(id);
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    const { view } = this.#options;
    for (const change of changes) {
      if (change.type === "pod") {
        const record = (change.after ?? change.before)?.record;
        if (record?.workloadKind === WORKSPACE_KIND) this.#loop.wake(record.workloadName);
      }
      if (change.type !== "node") continue;
      const { before, after } = change;
      const same =
        before?.health.ready === after?.health.ready && (before === undefined) === (after === undefined);
      if (same) continue;
      for (const { record } of view.instancesOnNode((after ?? before)?.name ?? ""))
        this.#loop.wake(record.id);
    }
  }

  #wakeForInstances(changes: readonly InstanceChange[]): void {
    // Other activity only defers a deadline, and the timer of the former deadline evaluates the
    // instance anyway.
    for (const { id, type, after } of changes)
      if (after !== undefined && (type === "instance" || this.#options.view.activity(id)?.record.closed))
        this.#loop.wake(id);
  }

  /**
   * Reconciles an instance. Returns the milliseconds until the next evaluation; undefined if only
   * events can change something.
   */
  async #reconcile(id: string): Promise<number | undefined> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const entry = this.#options.view.instance(id);
      if (entry === undefined) return undefined;
      // The pod that the record names must be in the cluster view before the plan is made.
      await this.#options.state.reached(entry.revision);
      const observation = this.#observe(entry.record);
      const plan = planWorkspace(entry.record, observation, transferObject);
      const outcome = await this.#execute(entry, plan, observation);
      if (outcome === "idle") {
        const nextMs = nextChangeMs(entry.record, observation);
        if (nextMs === undefined) return undefined;
        const maxMs = entry.record.node === "" ? PENDING_WAIT_MS : MAX_WAIT_MS;
        return Math.min(maxMs, Math.max(1, nextMs - observation.nowMs));
      }
      if (outcome === "retry-later") return CONTENT_RETRY_MS;
    }
    return 0;
  }

  #observe(record: InstanceRecord): Observation {
    const { state, view, settings, unschedulable, time } = this.#options;
    const pod = record.podName === "" ? undefined : state.pod(record.namespace, record.podName);
    const node = state.node(record.node === "" ? (pod?.record.node ?? "") : record.node);
    return {
      pod,
      node: node && {
        ...{ ready: node.health.ready, message: node.health.message, revoked: node.record.revoked },
        seen: node.health.lastSeenMs !== undefined,
      },
      activity: view.activity(record.id)?.record,
      unschedulable: unschedulable.get(record.podUid)?.summary ?? "",
      ...time.now(),
      settings,
    };
  }

  async #execute(
    entry: InstanceEntry,
    { record, steps }: WorkspacePlan,
    observation: Observation,
  ): Promise<"changed" | "idle" | "retry-later"> {
    const { writer, log, epoch } = this.#options;
    // The record of this revision states that the pod is gone, and so do all orders from this
    // version on.
    const isNewlyGone = entry.record.podGone && entry.record.podGoneVersion === 0n;
    let after = isNewlyGone ? { ...record, podGoneVersion: orderVersion(epoch, entry.revision) } : record;
    const writes: ExtraWrites[] = [];
    for (const step of steps) {
      switch (step.type) {
        case "create-pod": {
          const created = await this.#pods.create(after);
          after = created.record;
          writes.push(created.writes);
          break;
        }
        case "stop-pod":
          writes.push(this.#pods.stop(after, step));
          break;
        case "forget-pod":
          writes.push(this.#pods.forget(step.pod));
          break;
        case "confirm-transfer": {
          const order = orderVersion(epoch, entry.revision);
          const confirmed = await this.#confirm(after, step.transfer, order, observation);
          if (confirmed === undefined) return "retry-later";
          after = confirmed.record;
          writes.push(confirmed.writes);
          break;
        }
        case "release-meta-id":
          writes.push(releaseWrites(after, this.#options.view));
          break;
        case "delete-instance":
          writes.push(removalWrites(after, this.#options));
          break;
        default:
          step satisfies never;
      }
    }
    if (after === entry.record && writes.length === 0) return "idle";
    if (entry.record.phase !== after.phase)
      log.info({ event: "workspace-phase", workspace: after.id, from: entry.record.phase, to: after.phase });
    const compares = writes.flatMap((write) => write.compares ?? []);
    const ops = writes.flatMap((write) => write.ops ?? []);
    const deletes = steps.some(({ type }) => type === "delete-instance");
    if (!(await writer.replace(entry, deletes ? entry.record : after, { compares, ops })))
      throw new CoordinatorError("CONFLICT", `records of workspace ${after.id} changed meanwhile`);
    return "changed";
  }

  /** Confirms a transfer. Returns undefined if the content store is unreachable. */
  async #confirm(
    record: InstanceRecord,
    transfer: InstanceRecord["transfers"][number],
    order: bigint,
    { nowMs }: Observation,
  ) {
    const { content, view, settings, log } = this.#options;
    try {
      const stored = await content.stat(transfer.object);
      const backup = view.backup(record.metadata?.owner ?? "", record.metadata?.metaId ?? "");
      return confirmTransfer({
        ...{ record, transfer, stored, backup, nowMs, order },
        storeName: content.name,
        generations: settings.generations,
      });
    } catch (err) {
      log.warn({ event: "content-store-unavailable", workspace: record.id, object: transfer.object, err });
      return undefined;
    }
  }
}
