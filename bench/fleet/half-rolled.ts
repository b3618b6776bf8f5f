import { PodPhase, PodStatus, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import {
  AttemptState,
  NodeRecord,
  PodRecord,
  PodStatusRecord,
  ResourceRecord,
  RevisionRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { ActingTime } from "../../coordinator/src/acting-time/acting-time.ts";
import { templateRefOf, templateWrite } from "../../coordinator/src/control/pod-writes.ts";
import { nextEvaluationMs, planWorkload } from "../../coordinator/src/control/workload/plan.ts";
import { prefetchRequest } from "../../coordinator/src/control/workload/prefetch-status.ts";
import { rolloutView } from "../../coordinator/src/control/workload/rollout-view.ts";
import { workloadInput } from "../../coordinator/src/control/workload/view-input.ts";
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
import { type Workload, workloadKey, workloadOf } from "../../coordinator/src/model/workload.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import { loadClusterView } from "../../coordinator/src/state/load-view.ts";
import { createMemoryStore, type Op, type Store } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";

const NAMESPACE = "bench";
const KIND = "container_service";
const NAME = "web";
/** A rollout of many pods takes hundreds of looks: the code is compiled early in it. */
const WARM_UPS = 30;
const LOOKS = 41;
const OPS_AT_ONCE = 100;

/**
 * Measures what the workload's and the rollout's controllers compute when a pod of a half-rolled service changes. Half of the
 * replicas are ready and of the older revision, a quarter of the new ones is ready and the rest starts, which is the limit by
 * default.
 */
export async function measureHalfRolled(replicas: number, result: Record<string, number>): Promise<void> {
  const clock = systemClock;
  const time = new ActingTime({ clock });
  const store = createMemoryStore({ clock });
  const nodes = Math.ceil(replicas / 2);
  await writeAll(store, fleetOps(replicas, nodes, clock.nowMs()));
  const state = new ClusterView();
  await loadClusterView(store, state);
  for (const { name: node } of state.nodes())
    state.setNodeHealth(node, { ready: true, message: "", lastSeenMs: clock.nowMs() }, false);
  const look = (): number => {
    const input = workloadInput(workloadKey(NAMESPACE, KIND, NAME), time.now(), {
      state,
      unschedulable: { get: () => undefined },
      prefetcher: { imagesOn: () => ({ type: "pulling", message: "" }) },
      limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 1_000 },
      pickVictims: (pods, count) => pods.slice(0, count),
    });
    const wished = prefetchRequest(input)?.nodes.length ?? 0;
    const steps = planWorkload(input);
    if (steps.length > 0) throw new Error(`the rollout goes on: ${steps[0]?.type}`);
    nextEvaluationMs(input);
    rolloutView(input);
    return wished;
  };
  for (let count = 0; count < WARM_UPS; count++) look();
  const timesMs = Array.from({ length: LOOKS }, () => {
    const before = process.cpuUsage();
    look();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  }).sort((a, b) => a - b);
  const what = `${replicas} replicas half rolled on ${nodes} nodes: processor time a look`;
  result[`${what}, median (ms)`] = timesMs[(LOOKS - 1) / 2] ?? 0;
  result[`${what}, least (ms)`] = timesMs[0] ?? 0;
  await store.close();
}

function fleetOps(replicas: number, nodes: number, nowMs: number): Op[] {
  const [before, after] = [
    resourceOf("registry.example/web:1", 1n, replicas),
    resourceOf("registry.example/web:2", 2n, replicas),
  ];
  const [old, present] = [workloadOf(before), workloadOf(after)];
  if (old === undefined || present === undefined) throw new Error("the resource has no pods");
  const ops: Op[] = [put(resourceKey(NAMESPACE, KIND, NAME), encodeRecord(ResourceRecord, after))];
  for (const [number, record, workload] of [
    [1, before, old],
    [2, after, present],
  ] as const)
    ops.push(put(revisionKey(NAMESPACE, KIND, NAME, number), revisionOf(number, record, workload)));
  const now = toTimestamp(nowMs);
  const attempt = {
    generation: 2n,
    templateHash: present.templateHash,
    revision: 2,
    state: AttemptState.PROGRESSING,
    startedAt: now,
    progressedAt: now,
    progress: replicas,
  };
  const status = { $case: "containerService", value: { paused: false, attempt } } as const;
  const decided = WorkloadStatusRecord.fromPartial({ namespace: NAMESPACE, kind: KIND, name: NAME, status });
  ops.push(put(workloadStatusKey(NAMESPACE, KIND, NAME), encodeRecord(WorkloadStatusRecord, decided)));
  for (let index = 0; index < nodes; index++) {
    const node = NodeRecord.fromPartial({ name: `n${index}`, serials: ["01"] });
    ops.push(put(nodeKey(node.name), encodeRecord(NodeRecord, node)));
  }
  const half = replicas / 2;
  const quarter = replicas / 4;
  ops.push(...podsOf(old, half, () => true, nodes, nowMs));
  ops.push(...podsOf(present, half + quarter, (index) => index < quarter, nodes, nowMs));
  return ops;
}

function resourceOf(image: string, generation: bigint, replicas: number): ResourceRecord {
  const container = { name: "main", image, resources: { requests: { cpu: "10m", memory: "16Mi" } } };
  const spec = { $case: "containerService", value: { scaling: { replicas }, container } };
  const resource = ForageResource.fromPartial({ name: NAME, spec } as object);
  return ResourceRecord.fromPartial({
    namespace: NAMESPACE,
    kind: KIND,
    name: NAME,
    resource,
    specHash: image,
    generation,
  });
}

function revisionOf(
  number: number,
  { resource, specHash }: ResourceRecord,
  { templateHash }: Workload,
): Uint8Array {
  const good = number === 1;
  return encodeRecord(
    RevisionRecord,
    RevisionRecord.fromPartial({
      namespace: NAMESPACE,
      kind: KIND,
      name: NAME,
      number,
      resource,
      specHash,
      templateHash,
      good,
    } as object),
  );
}

function podsOf(
  of: Workload,
  count: number,
  ready: (index: number) => boolean,
  nodes: number,
  nowMs: number,
): Op[] {
  const template = PodTemplate.fromPartial(of.template);
  const templateRef = templateRefOf(template);
  const pods = Array.from({ length: count }, (_, index) => {
    const pod = `${NAME}-${of.templateHash.slice(0, 6)}-${index}`;
    return PodRecord.fromPartial({
      uid: pod,
      namespace: NAMESPACE,
      name: pod,
      workloadKind: KIND,
      workloadName: NAME,
      templateRef,
      templateHash: of.templateHash,
      node: `n${index % nodes}`,
      createdAt: toTimestamp(nowMs),
      boundAt: toTimestamp(nowMs),
    });
  });
  return [
    ...templateWrite({ namespace: NAMESPACE, kind: KIND, name: NAME, template }, templateRef).ops,
    ...pods.map((pod) => put(podKey(NAMESPACE, pod.name), encodePod(pod))),
    ...pods.map((pod, index) => statusOp(pod, ready(index), nowMs - 60_000)),
  ];
}

function statusOp({ uid, name: pod, node }: PodRecord, ready: boolean, nowMs: number): Op {
  const container = { name: "main", ready, state: { $case: "running", value: {} } };
  const status = PodStatus.fromPartial({
    uid,
    namespace: NAMESPACE,
    name: pod,
    phase: PodPhase.RUNNING,
    ready,
    containers: [container],
  } as object);
  const at = toTimestamp(nowMs);
  const record = PodStatusRecord.fromPartial({
    node,
    status,
    observedAt: at,
    readySince: ready ? at : undefined,
  });
  return put(statusKey(NAMESPACE, pod), encodeRecord(PodStatusRecord, record));
}

function put(key: string, value: Uint8Array): Op {
  return { kind: "put", key, value };
}

async function writeAll(store: Store, ops: readonly Op[]): Promise<void> {
  for (let first = 0; first < ops.length; first += OPS_AT_ONCE)
    await store.txn([], ops.slice(first, first + OPS_AT_ONCE));
}
