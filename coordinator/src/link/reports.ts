import type { Log } from "@forage/common/log";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { PodStatusRecord } from "@forage/proto/forage/store/v1/store";
import { batches, type StoreWrite } from "../model/batches.ts";
import { encodeRecord } from "../model/codec.ts";
import { statusKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import type { Compare, Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

export interface ReportOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
}

const MAX_FAILURES = 5;

/** The writes of one report. */
export interface ReportChange extends StoreWrite {
  readonly pod: PodEntry;
}

/**
 * Returns the writes for a node's report about pods. Only pods that are bound to the node count. REMOVED removes the
 * records, and the workload's reconciler then decides about a replacement. The last of two reports about one pod counts.
 * Pure.
 */
export function changesOf(
  node: string,
  statuses: readonly PodStatus[],
  state: ClusterView,
  nowMs: number,
): ReportChange[] {
  const changes: ReportChange[] = [];
  for (const status of new Map(statuses.map((s) => [s.uid, s])).values()) {
    const pod = state.podByUid(status.uid);
    if (pod === undefined || pod.record.node !== node) continue;
    const key = statusKey(pod.record.namespace, pod.record.name);
    const compares: Compare[] = [{ type: "exists", key: pod.key }];
    if (status.phase === PodPhase.REMOVED) {
      changes.push({
        pod,
        compares,
        ops: [
          { type: "delete", key: pod.key },
          { type: "delete", key },
        ],
      });
    } else if (pod.status === undefined || !isSameStatus(pod.status, status)) {
      const readySince = status.ready ? toTimestamp(readySinceMs(pod) ?? nowMs) : undefined;
      const record: PodStatusRecord = { node, status, observedAt: toTimestamp(nowMs), readySince };
      changes.push({
        pod,
        compares,
        ops: [{ type: "put", key, value: encodeRecord(PodStatusRecord, record) }],
      });
    }
  }
  return changes;
}

/** Returns the time since which the pod has been ready. Undefined: it is not ready. */
function readySinceMs({ status, readySinceMs: sinceMs, observedAtMs }: PodEntry): number | undefined {
  return status?.ready ? (sinceMs ?? observedAtMs) : undefined;
}

/** Returns the stopping pods that are missing in the node's complete report. */
export function vanishedPods(node: string, known: readonly PodStatus[], state: ClusterView): PodEntry[] {
  const uids = new Set(known.map((status) => status.uid));
  return state
    .podsOnNode(node)
    .filter((pod) => pod.record.stoppingSince !== undefined && !uids.has(pod.record.uid));
}

export async function recordStatuses(
  node: string,
  statuses: readonly PodStatus[],
  options: ReportOptions,
): Promise<void> {
  await write(() => changesOf(node, statuses, options.state, options.clock.nowMs()), options);
}

/**
 * Records the report of a connecting node. `vanished` are the uids of stopping pods that were missing in it: pods that were
 * stopped later may only be too new for the report.
 */
export async function recordHello(
  node: string,
  known: readonly PodStatus[],
  options: ReportOptions,
  vanished: ReadonlySet<string> = uidsOf(vanishedPods(node, known, options.state)),
): Promise<void> {
  await recordStatuses(node, known, options);
  const gone = (): PodEntry[] => [...vanished].flatMap((uid) => options.state.podByUid(uid) ?? []);
  await write(() => gone().map(forgetting), options);
}

function uidsOf(pods: readonly PodEntry[]): ReadonlySet<string> {
  return new Set(pods.map(({ record }) => record.uid));
}

function forgetting(pod: PodEntry): ReportChange {
  const key = statusKey(pod.record.namespace, pod.record.name);
  return {
    pod,
    compares: [{ type: "mod-revision", key: pod.key, revision: pod.revision }],
    ops: [
      { type: "delete", key: pod.key },
      { type: "delete", key },
    ],
  };
}

/** Writes reports. Evaluates them again if a pod was removed in the meantime, because that fails the whole transaction. */
async function write(
  evaluate: () => readonly ReportChange[],
  { store, state, log }: ReportOptions,
): Promise<void> {
  for (let failures = 0; failures < MAX_FAILURES; ) {
    const [part, ...later] = batches(evaluate());
    if (part === undefined) return;
    const result = await store.txn(
      part.flatMap((change) => change.compares),
      part.flatMap((change) => change.ops),
    );
    await state.reached(result.revision);
    if (!result.succeeded) failures++;
    else if (later.length === 0) return;
  }
  log.warn({ event: "statuses-not-recorded" });
}

/** Reports whether the statuses are equal. A status contains no maps, so equal statuses have equal encodings. */
function isSameStatus(a: PodStatus, b: PodStatus): boolean {
  // Most reports are about a new phase, which is cheap to compare.
  if (a.phase !== b.phase || a.ready !== b.ready) return false;
  return Buffer.compare(PodStatus.encode(a).finish(), PodStatus.encode(b).finish()) === 0;
}
