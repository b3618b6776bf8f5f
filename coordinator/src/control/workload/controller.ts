import type { Log } from "@forage/common/log";
import type { WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { CoordinatorError } from "../../errors.ts";
import { Batcher, eachBatch, type StoreWrite } from "../../model/batches.ts";
import type { EventRecorder } from "../../model/event.ts";
import { PREFIXES, resourceKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry, ResourceEntry } from "../../state/entries.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Compare, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import type { NewPodPlacement } from "../placement/new-pods.ts";
import type { UnschedulablePods } from "../placement/unschedulable-pods.ts";
import type { StepSink } from "../step-sink.ts";
import { joined, tryWrite } from "../write.ts";
import { yieldMsOf } from "../yield-time.ts";
import { isComplete, staysInPlace } from "./complete.ts";
import { keepFailedPods } from "./keep-failed.ts";
import { nextEvaluationMs, planWorkload } from "./plan.ts";
import type { Prefetcher } from "./prefetch.ts";
import { prefetchRequest } from "./prefetch-status.ts";
import type { ProgressLimits } from "./progress-limits.ts";
import { addDrainStops } from "./retire.ts";
import { stepEvents } from "./step-events.ts";
import { eachWrite, type StepWrite } from "./step-writes.ts";
import { workloadInput } from "./view-input.ts";
import type { WorkloadInput } from "./workload-input.ts";
import { describeStep, type WorkloadStep } from "./workload-step.ts";

export interface WorkloadControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  /** Receives every step before it is carried out. */
  readonly steps: StepSink;
  /** Nothing is reconciled before it resolves. Default: resolved. */
  readonly started?: Promise<void> | undefined;
  /** Returns a random string of lowercase letters and digits with this length. */
  readonly randomName: (length: number) => string;
  /** Places new pods before they are written. Undefined: they are created without a node. */
  readonly placement?: NewPodPlacement | undefined;
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
  /**
   * The reconcilers of kinds with a plan of their own, by kind. They share this loop, so that resources are evaluated in
   * the order of their bundle.
   */
  readonly ofKind?: Readonly<Record<string, (key: string) => Promise<number | undefined>>>;
  readonly unschedulable: Pick<UnschedulablePods, "get" | "restart">;
  readonly events: EventRecorder;
  /** The image prefetcher. Undefined: nodes have every image. */
  readonly prefetcher?: Prefetcher | undefined;
  readonly limits: ProgressLimits;
}

/** Brings each workload's pods to the state that its resource specifies. */
export class WorkloadController {
  readonly #options: WorkloadControllerOptions;
  readonly #loop: Loop;
  readonly #time: ActingTime;
  /** Workloads whose last evaluation had no steps, and whose next steps don't depend on the readiness of their pods. */
  readonly #complete = new Set<string>();

  constructor(options: WorkloadControllerOptions) {
    this.#options = options;
    this.#time = options.time ?? new ActingTime({ clock: options.clock });
    this.#loop = new Loop({
      name: "workload",
      reconcile: (key) => this.#reconcile(key),
      clock: options.clock,
      leastDelayMs: this.#time.leastDelayMs,
      log: options.log,
      started: options.started,
      restMs: (key) => yieldMsOf(options.state.podCountOf(key)),
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { record } of options.state.resources())
      this.#loop.wake(workloadKey(record.namespace, record.kind, record.name));
    for (const pod of options.state.pods()) this.#loop.wake(pod.workloadKey);
  }

  wake(key: string): void {
    this.#loop.wake(key);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    const withRoom = new Set<string>();
    for (const change of changes) {
      const entry = change.after ?? change.before;
      if (entry === undefined) continue;
      if (change.type === "pod") {
        const ofWorkload = (entry as PodEntry).workloadKey;
        // A large fleet reports readiness all the time, and an evaluation reads all pods of a workload.
        if (this.#complete.has(ofWorkload) && staysInPlace(change)) continue;
        this.#loop.wake(ofWorkload);
        // The removal of a pod that was never placed frees no room.
        const hadNode = (change.before?.record.node ?? "") !== "";
        if (change.after === undefined && hadNode) withRoom.add(ofWorkload);
      }
      if (change.type === "workload-status") {
        const { namespace, kind, name } = (entry as RecordEntry<WorkloadStatusRecord>).record;
        this.#loop.wake(workloadKey(namespace, kind, name));
      }
      if (change.type === "resource") {
        const { namespace, kind, name } = (entry as ResourceEntry).record;
        this.#loop.wake(workloadKey(namespace, kind, name));
      }
      if (
        change.type === "node" &&
        (change.after === undefined || change.before?.health.ready !== change.after.health.ready)
      ) {
        const name = (change.after ?? change.before)?.name ?? "";
        for (const pod of this.#options.state.podsOnNode(name)) this.#loop.wake(pod.workloadKey);
      }
    }
    for (const key of withRoom) this.#capacityFreed(key);
  }

  /**
   * Restarts the placement deadline of the workload's unplaced pods, because a removed pod has only now made room for them.
   */
  #capacityFreed(key: string): void {
    for (const pod of this.#options.state.unboundPods(key))
      this.#options.unschedulable.restart(pod.record.uid);
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const [namespace = "", itsKind = "", name = ""] = key.split("/");
    const fault = this.#options.state.resource(resourceKey(namespace, itsKind, name))?.fault;
    if (fault !== undefined)
      throw new CoordinatorError("INTERNAL", `the pods of ${key} can't be evaluated: ${fault}`);
    const other = this.#options.ofKind?.[itsKind];
    const againMs = await (other === undefined ? this.#reconcileService(key) : other(key));
    await this.#forgetTemplates(key);
    return againMs;
  }

  /**
   * Deletes templates that no pod uses. Only this loop creates pods of the workload, so none can be created from a template
   * that is being deleted.
   */
  async #forgetTemplates(key: string): Promise<void> {
    const { state } = this.#options;
    const writes = state.unusedTemplates(key).map((template): StoreWrite => {
      const { key: unused, revision } = template;
      return {
        compares: [{ type: "mod-revision", key: unused, revision }],
        ops: [{ type: "delete", key: unused }],
      };
    });
    for (const part of eachBatch(writes)) {
      await tryWrite(joined(part), this.#options);
    }
  }

  async #reconcileService(key: string): Promise<number | undefined> {
    const { events } = this.#options;
    this.#complete.delete(key);
    const input = workloadInput(key, this.#time.now(), this.#options);
    this.#options.prefetcher?.setRequest(key, prefetchRequest(input));
    const steps = keepFailedPods(addDrainStops(planWorkload(input), input), input);
    if (steps.length > 0) {
      for (const step of steps) this.#options.steps.report({ workload: key, ...describeStep(step) });
      await this.#execute(key, input, steps);
      const recorded = input.resource && stepEvents(input.resource, input.status?.attempt, steps);
      for (const event of recorded ?? []) events.record(event);
    }
    const againMs = nextEvaluationMs(input);
    if (steps.length === 0 && againMs === undefined && isComplete(input)) this.#complete.add(key);
    return againMs;
  }

  /**
   * Executes the steps in as few transactions as the store's limits allow. Each transaction requires that the resource and
   * its status are unchanged.
   */
  async #execute(key: string, { resource }: WorkloadInput, steps: readonly WorkloadStep[]): Promise<void> {
    const { state, clock, randomName, placement } = this.#options;
    const nowMs = clock.nowMs();
    const priorityOf = (name: string) => state.objects.priorityOf(name);
    const status = state.workloadStatuses.get(PREFIXES.workloadStatuses + key);
    const hasTemplate = (template: string) => state.podTemplates.has(template);
    const context = {
      resource,
      status: status?.record,
      nowMs,
      randomName,
      priorityOf,
      hasTemplate,
      placement,
    };
    const transactions = { key, resource, statusRevision: status?.revision ?? 0, reached: 0 };
    const batcher = new Batcher<StepWrite>();
    try {
      for (const write of eachWrite(steps, context)) {
        const full = batcher.add(write);
        if (full !== undefined) await this.#commit(full, transactions);
        await placement?.rest();
      }
      const rest = batcher.rest();
      if (rest.length > 0) await this.#commit(rest, transactions);
    } finally {
      placement?.release();
    }
    // Waits until the view contains the writes. Otherwise the next evaluation would repeat them.
    await state.reached(transactions.reached);
  }

  async #commit(part: readonly StepWrite[], transactions: Transactions): Promise<void> {
    const { store, state, placement } = this.#options;
    const { key, resource, statusRevision } = transactions;
    const statusKey = PREFIXES.workloadStatuses + key;
    const { compares, ops } = joined(part);
    const unchanged: Compare[] =
      resource === undefined
        ? []
        : [
            { type: "mod-revision", key: resource.key, revision: resource.revision },
            { type: "mod-revision", key: statusKey, revision: statusRevision },
          ];
    const result = await store.txn([...compares, ...unchanged], ops);
    transactions.reached = result.revision;
    if (!result.succeeded) {
      await state.reached(result.revision);
      throw new CoordinatorError("CONFLICT", "something changed meanwhile");
    }
    placement?.confirm(part.flatMap(({ placed }) => placed ?? []));
    if (ops.some((op) => op.type === "put" && op.key === statusKey))
      transactions.statusRevision = result.revision;
  }
}

/** The transactions that carry out one evaluation's steps. */
interface Transactions {
  readonly key: string;
  readonly resource: ResourceEntry | undefined;
  /** The revision of the workload's status that the next transaction requires. */
  statusRevision: number;
  /** The store's revision after the last transaction. */
  reached: number;
}
