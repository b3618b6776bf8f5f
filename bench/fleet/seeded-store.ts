import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AttemptState, NodeStatusRecord, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { reportKey } from "../../coordinator/src/model/keys.ts";
import { toTimestamp } from "../../coordinator/src/model/timestamp.ts";
import { workloadOf } from "../../coordinator/src/model/workload.ts";
import { type Op, openLevelStore } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import { anonymousMb, cpuSeconds, residentMb } from "../apply/process-cost.ts";
import { requestsFor } from "./apply-pods.ts";
import { startCoordinatorProcess } from "./coordinator-process.ts";
import { helloOf } from "./pod-answers.ts";
import {
  attemptOp,
  KIND,
  NAMESPACE,
  nodeOp,
  OPS_AT_ONCE,
  podOps,
  put,
  resourceOp,
  revisionOp,
} from "./stored-records.ts";

/** The number of writes that wait for the disk together. */
const TXNS_AT_ONCE = 50;
const SETTLE_MS = 3_000;

/** Measures a start with a store of that many nodes and pods, and the memory for each pod. */
export async function measureStart(
  nodes: number,
  pods: number,
  result: Record<string, number>,
): Promise<void> {
  const without = await startSeeded(nodes, 0);
  const cost = await startSeeded(nodes, pods);
  const what = `start with ${nodes} nodes and ${pods} pods stored`;
  result[`${what}: until it serves (s)`] = cost.seconds;
  result[`${what}: processor time until it serves (s)`] = cost.cpuSeconds;
  result[`${what}: resident (MB)`] = cost.residentMb;
  result[`${what}: resident a pod with its status (kB)`] =
    ((cost.residentMb - without.residentMb) * 1000) / pods;
  result[`${what}: anonymous memory a pod with its status (kB)`] =
    ((cost.anonymousMb - without.anonymousMb) * 1000) / pods;
}

interface StartCost {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly residentMb: number;
  readonly anonymousMb: number;
}

async function startSeeded(nodes: number, pods: number): Promise<StartCost> {
  let startedMs = 0;
  const coordinator = await startCoordinatorProcess(undefined, {}, async (dataDir) => {
    await seed(join(dataDir, "store"), nodes, pods);
    startedMs = performance.now();
  });
  try {
    const seconds = (performance.now() - startedMs) / 1000;
    const used = cpuSeconds(coordinator.pid);
    await delay(SETTLE_MS);
    return {
      seconds,
      cpuSeconds: used,
      residentMb: residentMb(coordinator.pid),
      anonymousMb: anonymousMb(coordinator.pid),
    };
  } finally {
    await coordinator.close();
  }
}

async function seed(dir: string, nodes: number, pods: number): Promise<void> {
  const store = await openLevelStore({ dir, clock: systemClock });
  const nowMs = systemClock.nowMs();
  let waiting: Promise<unknown>[] = [];
  let ops: Op[] = [];
  const flush = (): void => {
    waiting.push(store.txn([], ops));
    ops = [];
  };
  for (const op of opsOf(nodes, pods, nowMs)) {
    ops.push(op);
    if (ops.length === OPS_AT_ONCE) flush();
    if (waiting.length < TXNS_AT_ONCE) continue;
    await Promise.all(waiting);
    waiting = [];
  }
  flush();
  await Promise.all(waiting);
  await store.compact(store.revision);
  await store.close();
}

function* opsOf(nodes: number, pods: number, nowMs: number): Generator<Op> {
  for (let index = 0; index < nodes; index++) {
    const name = `n${index}`;
    yield nodeOp(name);
    const report = { name, report: helloOf(name).node, observedAt: toTimestamp(nowMs) };
    yield put(reportKey(name), encodeRecord(NodeStatusRecord, NodeStatusRecord.fromPartial(report)));
  }
  let first = 0;
  for (const { resources } of pods === 0 ? [] : requestsFor(pods))
    for (const resource of resources) {
      const record = ResourceRecord.fromPartial({
        namespace: NAMESPACE,
        kind: KIND,
        name: resource.name,
        resource,
        specHash: "hash",
        generation: 1n,
        createdAt: toTimestamp(nowMs),
      });
      yield* serviceOps(record, nodes, first, nowMs);
      first += workloadOf(record)?.replicas ?? 0;
    }
}

/** Yields the operations of a service that has been rolled out. Its pods are ready on the nodes from `first` on. */
function* serviceOps(record: ResourceRecord, nodes: number, first: number, nowMs: number): Generator<Op> {
  const { name } = record;
  const workload = workloadOf(record);
  if (workload === undefined) throw new Error("the resource has no pods");
  const { templateHash, replicas } = workload;
  yield resourceOp(record);
  yield revisionOp(record, workload, 1, true);
  const state = AttemptState.SUCCEEDED;
  yield attemptOp(name, {
    ...{ generation: 1n, templateHash, revision: 1, state },
    startedAt: toTimestamp(nowMs),
  });
  yield* podOps({
    ...{ name, workload, count: replicas, first, nodes, nowMs },
    isReady: () => true,
    observedMs: nowMs,
  });
}
