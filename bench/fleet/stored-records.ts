import { PodPhase, PodStatus, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import {
  type AttemptState,
  NodeRecord,
  PodRecord,
  PodStatusRecord,
  ResourceRecord,
  RevisionRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { templateRefOf, templateWrite } from "../../coordinator/src/control/pod-writes.ts";
import { encodePod, encodeRecord } from "../../coordinator/src/model/codec.ts";
import {
  nodeKey,
  podKey,
  resourceKey,
  revisionKey,
  statusKey,
  workloadStatusKey,
} from "../../coordinator/src/model/keys.ts";
import { toTimestamp } from "../../coordinator/src/model/timestamp.ts";
import type { Workload } from "../../coordinator/src/model/workload.ts";
import type { Op } from "../../coordinator/src/store/index.ts";

type Timestamp = ReturnType<typeof toTimestamp>;

export const NAMESPACE = "bench";
export const KIND = "container_service";
/** The number of operations in one transaction. */
export const OPS_AT_ONCE = 100;

export function put(key: string, value: Uint8Array): Op {
  return { type: "put", key, value };
}

export function nodeOp(name: string): Op {
  return put(nodeKey(name), encodeRecord(NodeRecord, NodeRecord.fromPartial({ name, serials: ["01"] })));
}

export function resourceOp(record: ResourceRecord): Op {
  return put(resourceKey(NAMESPACE, KIND, record.name), encodeRecord(ResourceRecord, record));
}

export function revisionOp(
  { name, resource, specHash }: ResourceRecord,
  { templateHash }: Workload,
  number: number,
  good: boolean,
): Op {
  const revision = { namespace: NAMESPACE, kind: KIND, name, number, resource, specHash, templateHash, good };
  return put(
    revisionKey(NAMESPACE, KIND, name, number),
    encodeRecord(RevisionRecord, RevisionRecord.fromPartial(revision as object)),
  );
}

export interface StoredAttempt {
  readonly generation: bigint;
  readonly templateHash: string;
  readonly revision: number;
  readonly state: AttemptState;
  readonly startedAt: Timestamp;
  readonly progressedAt?: Timestamp;
  readonly progress?: number;
}

export function attemptOp(name: string, attempt: StoredAttempt): Op {
  const status = { $case: "containerService", value: { paused: false, attempt } } as const;
  const record = WorkloadStatusRecord.fromPartial({
    namespace: NAMESPACE,
    kind: KIND,
    name,
    status,
  } as object);
  return put(workloadStatusKey(NAMESPACE, KIND, name), encodeRecord(WorkloadStatusRecord, record));
}

export interface StoredPods {
  /** The name of the service. */
  readonly name: string;
  readonly workload: Workload;
  readonly count: number;
  /** The number of the first pod in the fleet. Each pod is on the node after that of the previous pod. */
  readonly first: number;
  readonly nodes: number;
  readonly isReady: (index: number) => boolean;
  readonly nowMs: number;
  /** The time since which the pods have had their state. */
  readonly observedMs: number;
}

/** Returns pods of one template that run on the nodes, with their statuses. */
export function* podOps(pods: StoredPods): Generator<Op> {
  const { name, workload, count, first, nodes, isReady, nowMs, observedMs } = pods;
  const { templateHash } = workload;
  const template = PodTemplate.fromPartial(workload.template);
  const templateRef = templateRefOf(template);
  yield* templateWrite({ namespace: NAMESPACE, kind: KIND, name, template }, templateRef).ops;
  const at = toTimestamp(nowMs);
  for (let index = 0; index < count; index++) {
    const pod = PodRecord.fromPartial({
      uid: `${templateHash.slice(0, 8)}-b541-0415-${String(first + index).padStart(12, "0")}`,
      namespace: NAMESPACE,
      name: `${name}-${templateHash.slice(0, 6)}-${index}`,
      workloadKind: KIND,
      workloadName: name,
      templateRef,
      templateHash,
      node: `n${(first + index) % nodes}`,
      createdAt: at,
      boundAt: at,
    });
    yield put(podKey(NAMESPACE, pod.name), encodePod(pod));
    const status = statusOf(pod, isReady(index), observedMs);
    yield put(statusKey(NAMESPACE, pod.name), encodeRecord(PodStatusRecord, status));
  }
}

function statusOf(
  { uid, name, node, templateHash }: PodRecord,
  ready: boolean,
  atMs: number,
): PodStatusRecord {
  const at = toTimestamp(atMs);
  const container = { name: "main", ready, state: { $case: "running", value: { startedAt: at } } } as const;
  const status = PodStatus.fromPartial({
    uid,
    namespace: NAMESPACE,
    name,
    specHash: templateHash,
    phase: PodPhase.RUNNING,
    ready,
    podIp: "10.0.0.1",
    containers: [container],
    hostPorts: [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_000 }],
  });
  return { node, status, observedAt: at, readySince: ready ? at : undefined };
}
