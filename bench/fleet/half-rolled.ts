import { AttemptState, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { ActingTime } from "../../coordinator/src/acting-time/acting-time.ts";
import { nextEvaluationMs, planWorkload } from "../../coordinator/src/control/workload/plan.ts";
import { prefetchRequest } from "../../coordinator/src/control/workload/prefetch-status.ts";
import { rolloutView } from "../../coordinator/src/control/workload/rollout-view.ts";
import { workloadInput } from "../../coordinator/src/control/workload/view-input.ts";
import { toTimestamp } from "../../coordinator/src/model/timestamp.ts";
import { workloadKey, workloadOf } from "../../coordinator/src/model/workload.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import { loadClusterView } from "../../coordinator/src/state/load-view.ts";
import { createMemoryStore, type Op, type Store } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import {
  attemptOp,
  KIND,
  NAMESPACE,
  nodeOp,
  OPS_AT_ONCE,
  podOps,
  resourceOp,
  revisionOp,
} from "./stored-records.ts";

const NAME = "web";
/** A rollout of many pods is evaluated hundreds of times, so the code is compiled early in it. */
const WARM_UPS = 30;
const LOOKS = 41;

/**
 * Measures the computation of the workload's and the rollout's controllers when a pod of a half-rolled service changes.
 * Half of the replicas are ready and of the older revision, a quarter of the new ones is ready and the rest starts,
 * which is the limit by default.
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
  const evaluate = (): number => {
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
  for (let count = 0; count < WARM_UPS; count++) evaluate();
  const timesMs = Array.from({ length: LOOKS }, () => {
    const before = process.cpuUsage();
    evaluate();
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
  const half = replicas / 2;
  const quarter = replicas / 4;
  const pods = { name: NAME, first: 0, nodes, nowMs, observedMs: nowMs - 60_000 };
  return [
    resourceOp(after),
    revisionOp(before, old, 1, true),
    revisionOp(after, present, 2, false),
    attemptOp(NAME, attempt),
    ...Array.from({ length: nodes }, (_, index) => nodeOp(`n${index}`)),
    ...podOps({ ...pods, workload: old, count: half, isReady: () => true }),
    ...podOps({ ...pods, workload: present, count: half + quarter, isReady: (index) => index < quarter }),
  ];
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

async function writeAll(store: Store, ops: readonly Op[]): Promise<void> {
  for (let first = 0; first < ops.length; first += OPS_AT_ONCE)
    await store.txn([], ops.slice(first, first + OPS_AT_ONCE));
}
