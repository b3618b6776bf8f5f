import { PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import type { KeptPodRecord } from "@forage/proto/forage/store/v1/store";
import { podKey } from "../model/keys.ts";
import { toEpochMs } from "../model/timestamp.ts";
import { workloadKey } from "../model/workload.ts";
import type { PodEntry } from "./entries.ts";
import type { RecordEntry, RecordView } from "./record-view.ts";

/** A failed pod that a rollback has stopped, whose last status and logs can still be read. */
export interface KeptPod {
  /** The pod when it was stopped, with the phase FAILED. */
  readonly entry: PodEntry;
  readonly untilMs: number;
}

interface KeptPodsView {
  readonly keptPods: RecordView<KeptPodRecord>;
  pod(namespace: string, name: string): PodEntry | undefined;
}

/** Returns the groups of a kept pod's record in the view. */
export function keptPodGroups({ pod }: KeptPodRecord): readonly string[] {
  if (pod === undefined) return [];
  const { namespace, workloadKind, workloadName } = pod;
  return [`ns:${namespace}`, `workload:${workloadKey(namespace, workloadKind, workloadName)}`];
}

/** Returns the kept pods that are gone from their nodes and whose time has not passed: of one namespace, or of all. */
export function keptPods(state: KeptPodsView, namespace: string | undefined, nowMs: number): KeptPod[] {
  const records = namespace === undefined ? state.keptPods.all() : state.keptPods.group(`ns:${namespace}`);
  return records
    .flatMap((record) => keptPod(record) ?? [])
    .filter(({ entry: { record }, untilMs }) => {
      // While the pod is stopping, its own record is shown.
      return untilMs > nowMs && state.pod(record.namespace, record.name)?.record.uid !== record.uid;
    });
}

function keptPod({ revision, record }: RecordEntry<KeptPodRecord>): KeptPod | undefined {
  const { pod, status } = record;
  if (pod === undefined) return undefined;
  const entry: PodEntry = {
    key: podKey(pod.namespace, pod.name),
    revision,
    record: pod,
    workloadKey: workloadKey(pod.namespace, pod.workloadKind, pod.workloadName),
    refs: [],
    status: status && asFailed(status),
    observedAtMs: toEpochMs(pod.stoppingSince),
  };
  return { entry, untilMs: toEpochMs(pod.keptUntil) ?? 0 };
}

function asFailed(status: PodStatus): PodStatus {
  return { ...status, phase: PodPhase.FAILED, ready: false };
}
