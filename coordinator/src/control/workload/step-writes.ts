import {
  type PodRecord,
  RevisionRecord,
  type RolloutAttempt,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import type { StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { PREFIXES, podTemplateKey, revisionKey, scaleKey, workloadStatusKey } from "../../model/keys.ts";
import type { Priority } from "../../model/priority.ts";
import { drawUnused } from "../../model/unused-name.ts";
import { type Workload, workloadKey } from "../../model/workload.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { Op } from "../../store/index.ts";
import type { NewPodPlacement } from "../placement/new-pods.ts";
import {
  createPod,
  forgetPod,
  newPodRecord,
  rewritePod,
  stopFailedPod,
  stopPod,
  templateRefOf,
  templateWrite,
} from "../pod-writes.ts";
import type { WorkloadStep } from "./workload-step.ts";

export interface StepContext {
  readonly resource: ResourceEntry | undefined;
  /** The stored status. */
  readonly status: WorkloadStatusRecord | undefined;
  readonly nowMs: number;
  readonly randomName: (length: number) => string;
  readonly priorityOf: (className: string) => Priority | undefined;
  /** Reports whether the template with this key is stored. */
  readonly hasTemplate: (key: string) => boolean;
  /** Places new pods. Undefined: they are created without a node. */
  readonly placement: Pick<NewPodPlacement, "accepts" | "place"> | undefined;
}

export interface StepWrite extends StoreWrite {
  /** The pod that the write creates on a node. */
  readonly placed?: PodRecord;
}

/** Yields the writes for the steps. Each yielded write is stored completely or not at all. */
export function* eachWrite(steps: readonly WorkloadStep[], context: StepContext): Generator<StepWrite> {
  const stored = new Set<string>();
  const suffixes = new Set<string>();
  for (const step of steps) {
    if (step.type !== "create-pods") {
      yield* stepPieces(step, context);
      continue;
    }
    const { of } = step;
    const ref = templateRefOf(of.template);
    const key = podTemplateKey(workloadKey(of.namespace, of.kind, of.name), ref);
    if (!stored.has(key) && !context.hasTemplate(key)) yield templateWrite(of, ref);
    stored.add(key);
    yield* eachNewPod(step, ref, suffixes, context);
  }
}

/** Yields the writes that create the pods, as many as fit on nodes, then the others without a node. */
function* eachNewPod(
  { of, count }: WorkloadStep & { readonly type: "create-pods" },
  ref: string,
  used: Set<string>,
  context: StepContext,
): Generator<StepWrite> {
  const { placement } = context;
  const draw = (): string => drawUnused(used, () => context.randomName(5));
  // Pods that are bound at the same time are ordered by name, also after a restart.
  const suffixes = Array.from({ length: count }, draw).sort();
  let fits = placement?.accepts(of) ?? false;
  for (const suffix of suffixes) {
    const record = newRecord(of, ref, suffix, context);
    const placed = fits ? placement?.place({ ...record, template: of.template }) : undefined;
    fits = placed !== undefined;
    yield placed === undefined ? createPod(record) : { ...createPod(placed), placed };
  }
}

type OtherStep = Exclude<WorkloadStep, { readonly type: "create-pods" }>;

function stepPieces(step: OtherStep, context: StepContext): StoreWrite[] {
  const { resource, nowMs } = context;
  switch (step.type) {
    case "start-rollout":
      return [{ compares: [], ops: startOps(step, context) }];
    case "update-rollout": {
      const ops = [putStatus(step.attempt, context)];
      if (step.good !== undefined) ops.push(putRevision({ ...step.good, good: true }));
      return [{ compares: [], ops }];
    }
    case "stop-pod":
      return [
        step.keep === undefined
          ? stopPod(step.pod, step.why, nowMs)
          : stopFailedPod(step.pod, step.why, step.keep.attemptStartedAt, nowMs),
      ];
    case "relabel-pod": {
      const labels = { ...required(resource?.workload).labels };
      return [rewritePod(step.pod, { ...step.pod.record, labels })];
    }
    case "forget-pod":
      return [forgetPod(step.pod)];
    case "forget-resource":
      return [{ compares: [], ops: forgetOps(required(resource)) }];
    default:
      return step satisfies never;
  }
}

function startOps(
  { attempt, revision, forget }: WorkloadStep & { readonly type: "start-rollout" },
  context: StepContext,
): Op[] {
  const { namespace, kind, name } = revision;
  return [
    putStatus(attempt, context),
    putRevision(revision),
    ...forget.map((number): Op => ({ type: "delete", key: revisionKey(namespace, kind, name, number) })),
  ];
}

function putStatus(attempt: RolloutAttempt, { resource, status }: StepContext): Op {
  const { namespace, kind, name } = required(resource).record;
  const before = status ?? WorkloadStatusRecord.fromPartial({ namespace, kind, name });
  const paused = before.status?.$case === "containerService" && before.status.value.paused;
  const record = { ...before, status: { $case: "containerService", value: { paused, attempt } } } as const;
  return {
    type: "put",
    key: workloadStatusKey(namespace, kind, name),
    value: encodeRecord(WorkloadStatusRecord, record),
  };
}

function putRevision(revision: RevisionRecord): Op {
  const { namespace, kind, name, number } = revision;
  const value = encodeRecord(RevisionRecord, revision);
  return { type: "put", key: revisionKey(namespace, kind, name, number), value };
}

function newRecord(
  workload: Workload,
  templateRef: string,
  suffix: string,
  { randomName, nowMs, priorityOf }: StepContext,
): PodRecord {
  const pod = {
    namespace: workload.namespace,
    workloadKind: workload.kind,
    workloadName: workload.name,
    name: `${workload.name}-${workload.templateHash.slice(0, 6)}-${suffix}`,
    uid: randomName(12),
    labels: workload.labels,
    templateRef,
    templateHash: workload.templateHash,
    priority: priorityOf(workload.template.podConfig?.priorityClassName ?? ""),
  };
  return newPodRecord(pod, nowMs);
}

/** Returns the operations that delete the resource with all its records. */
function forgetOps({ key, record: { namespace, kind, name } }: ResourceEntry): Op[] {
  const ops: Op[] = [{ type: "delete", key }];
  if (kind !== "container_service") return ops;
  return [
    ...ops,
    { type: "delete", key: workloadStatusKey(namespace, kind, name) },
    { type: "delete", key: scaleKey(namespace, name) },
    { type: "delete-prefix", prefix: `${PREFIXES.revisions}${namespace}/${kind}/${name}/` },
  ];
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new CoordinatorError("INTERNAL", "a step lacks its workload");
  return value;
}
