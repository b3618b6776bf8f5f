import type { Log } from "@forage/common/log";
import { JobStatus, ResourceRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { CoordinatorError } from "../../errors.ts";
import { batches, eachBatch, type StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import type { Job } from "../../model/job.ts";
import { podTemplateKey, workloadStatusKey } from "../../model/keys.ts";
import { drawUnused } from "../../model/unused-name.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Compare, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import {
  createPod,
  forgetPod,
  type NewPod,
  newPodRecord,
  rewritePod,
  stopPod,
  templateRefOf,
  templateWrite,
} from "../pod-writes.ts";
import type { StepSink } from "../step-sink.ts";
import { write } from "../write.ts";
import { countPods } from "./count.ts";
import { describeJobStep } from "./describe-step.ts";
import { eventOf } from "./events.ts";
import { jobInput } from "./job-input.ts";
import { podOfJob } from "./job-pod.ts";
import { type JobInput, type JobStep, nextJobEvaluationMs, planJob } from "./plan.ts";

export interface JobReconcilerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  /** The clock of deadlines, which excludes time in which the coordinator could not act. Default: all time counts. */
  readonly time?: ActingTime | undefined;
  readonly log: Log;
  /** Receives every step before it is carried out. */
  readonly steps: StepSink;
  readonly events: EventRecorder;
  readonly randomName: (length: number) => string;
  /** Reports whether the resource has unmet dependencies. */
  readonly held: (resource: ResourceEntry) => boolean;
}

/** The limit of plans in one evaluation. The next evaluation continues after other workloads. */
const MAX_ROUNDS = 20;
/** The limit of the wait until the next evaluation, so that a changed wall clock is noticed in time. */
const MAX_WAIT_MS = 60_000;

interface JobContext extends JobInput {
  readonly statusKey: string;
  readonly entry: RecordEntry<WorkloadStatusRecord> | undefined;
}

/** Reconciles jobs, by the keys of their workloads. */
export class JobReconciler {
  readonly #options: JobReconcilerOptions;
  readonly #time: ActingTime;

  constructor(options: JobReconcilerOptions) {
    this.#options = options;
    this.#time = options.time ?? new ActingTime({ clock: options.clock });
  }

  /** Returns the milliseconds after which to evaluate the job again even without a change. Undefined: never. */
  async reconcile(key: string): Promise<number | undefined> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const context = this.#contextOf(key);
      const steps = planJob(context);
      if (steps.length === 0) {
        const nextMs = nextJobEvaluationMs(context);
        return nextMs === undefined ? undefined : Math.min(MAX_WAIT_MS, Math.max(1, nextMs - context.nowMs));
      }
      for (const step of steps) this.#options.steps.report({ workload: key, ...describeJobStep(step) });
      await this.#execute(context, steps);
    }
    return 0;
  }

  #contextOf(key: string): JobContext {
    const { state } = this.#options;
    const [namespace = "", kind = "", name = ""] = key.split("/");
    const statusKey = workloadStatusKey(namespace, kind, name);
    const entry = state.workloadStatuses.get(statusKey);
    return { statusKey, entry, ...jobInput(key, this.#time.now(), this.#options) };
  }

  /** Executes the steps in one transaction. The next plan sees the result. */
  async #execute(context: JobContext, steps: readonly JobStep[]): Promise<void> {
    const { events } = this.#options;
    const [first] = steps;
    const parts =
      first?.type === "count-pods"
        ? [this.#count(context, first)]
        : eachBatch(this.#eachWrite(context, steps));
    // The transaction fails if the status or the resource has changed since the plan.
    let statusRevision = context.entry?.revision ?? 0;
    for (const part of parts) {
      const compares: Compare[] = part.flatMap((write) => write.compares);
      if (context.resource !== undefined)
        compares.push({
          type: "mod-revision",
          key: context.resource.key,
          revision: context.resource.revision,
        });
      compares.push({ type: "mod-revision", key: context.statusKey, revision: statusRevision });
      const ops = part.flatMap((write) => write.ops);
      const revision = await write({ compares, ops }, this.#options);
      if (ops.some((op) => op.type !== "delete-prefix" && op.key === context.statusKey))
        statusRevision = revision;
    }
    for (const step of steps) {
      const event = context.job && eventOf(step, context.job);
      if (event !== undefined) events.record(event);
    }
  }

  /** Counts as many pods as fit in one transaction. The next plan counts the rest. */
  #count(context: JobContext, { pods }: Extract<JobStep, { readonly type: "count-pods" }>): StoreWrite[] {
    const job = required(context.job);
    const before = required(context.status);
    const marks = countPods(job, before, pods).counted.map(({ pod, as }) => ({
      pod,
      ...rewritePod(pod, { ...pod.record, job: { ...required(pod.record.job), counted: as } }),
    }));
    // The status takes up to five characters for each completed index.
    const [part = []] = batches([
      { pod: undefined, ...statusPiece(context, before, job.completions ?? 0) },
      ...marks,
    ]);
    const chosen = part.flatMap(({ pod }) => pod ?? []);
    const { status, counted } = countPods(job, before, chosen);
    const writes = counted.map(({ pod, as }) =>
      rewritePod(pod, { ...pod.record, job: { ...required(pod.record.job), counted: as } }),
    );
    return [statusPiece(context, status), ...writes];
  }

  *#eachWrite(context: JobContext, steps: readonly JobStep[]): Generator<StoreWrite> {
    const makes = steps.some(({ type }) => type === "create-pod");
    const ref = makes ? templateRefOf(required(context.job).template) : "";
    if (makes) yield* this.#templatePieces(required(context.job), ref);
    const suffixes = new Set<string>();
    const newPod = (index: number | undefined) => this.#newPod(required(context.job), index, ref, suffixes);
    for (const step of steps) yield* this.#writes(context, step, newPod);
  }

  #templatePieces({ namespace, name, template }: Job, ref: string): StoreWrite[] {
    const key = podTemplateKey(workloadKey(namespace, "job", name), ref);
    if (this.#options.state.podTemplates.has(key)) return [];
    return [templateWrite({ namespace, kind: "job", name, template }, ref)];
  }

  #writes(context: JobContext, step: JobStep, newPod: (index: number | undefined) => NewPod): StoreWrite[] {
    const nowMs = this.#options.clock.nowMs();
    switch (step.type) {
      case "count-pods":
        throw new CoordinatorError("INTERNAL", "pods must be counted in a transaction of their own");
      case "write-status":
        return [statusPiece(context, step.status)];
      case "create-pod":
        return [createPod(newPodRecord(newPod(step.index), nowMs))];
      case "stop-pod":
        return [stopPod(step.pod, step.why, nowMs)];
      case "relabel-pod":
        return [rewritePod(step.pod, { ...step.pod.record, labels: { ...step.labels } })];
      case "forget-pod":
        return [forgetPod(step.pod)];
      case "remove-job": {
        const { key, record } = required(context.resource);
        const value = encodeRecord(ResourceRecord, { ...record, deleting: true });
        return [{ compares: [], ops: [{ type: "put", key, value }] }];
      }
      case "forget-resource":
        return [
          {
            compares: [],
            ops: [
              { type: "delete", key: required(context.resource).key },
              { type: "delete", key: context.statusKey },
            ],
          },
        ];
      default:
        return step satisfies never;
    }
  }

  #newPod(job: Job, index: number | undefined, templateRef: string, suffixes: Set<string>): NewPod {
    const { randomName, state } = this.#options;
    const className = job.template.podConfig?.priorityClassName ?? "";
    const names = { uid: randomName(12), suffix: drawUnused(suffixes, () => randomName(5)) };
    return podOfJob(job, index, names, state.objects.priorityOf(className), templateRef);
  }
}

/** Returns the write of the status. `room` is the number of indexes that may be added to it. */
function statusPiece({ statusKey, entry, job }: JobContext, status: JobStatus, room = 0): StoreWrite {
  const { namespace, name } = required(job);
  const base = entry?.record ?? WorkloadStatusRecord.fromPartial({ namespace, kind: "job", name });
  const record: WorkloadStatusRecord = {
    ...base,
    status: { $case: "job", value: JobStatus.fromPartial(status) },
  };
  const value = encodeRecord(WorkloadStatusRecord, record);
  const sized = room === 0 ? value : new Uint8Array(value.byteLength + 6 * room);
  return { compares: [], ops: [{ type: "put", key: statusKey, value: sized }] };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new CoordinatorError("INTERNAL", "a step lacks its job");
  return value;
}
