import type { KeptPodRecord } from "@forage/proto/forage/store/v1/store";
import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";
import { isOfAttempt, KEEP_FAILED_MS } from "../../model/kept-pod.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import type { RecordEntry } from "../../state/record-view.ts";

export interface KeptPodsInput {
  /** The kept pods of one workload. */
  readonly kept: readonly RecordEntry<KeptPodRecord>[];
  /** The start of the workload's current rollout attempt. Undefined: the workload is gone. */
  readonly attemptStartedAt: Timestamp | undefined;
  readonly nowMs: number;
}

export interface KeptPodsPlan {
  readonly remove: readonly RecordEntry<KeptPodRecord>[];
  /** The time of the next removal of a kept pod. Undefined: none is left. */
  readonly nextMs: number | undefined;
}

/**
 * The limit up to which an end may be in the future. An end beyond it was stored before the clock was set back, and counts
 * as over.
 */
const FARTHEST_END_MS = 2 * KEEP_FAILED_MS;

/** Returns the kept pods to remove: those whose time is over, and those of earlier rollout attempts. Pure. */
export function planKeptPods({ kept, attemptStartedAt, nowMs }: KeptPodsInput): KeptPodsPlan {
  const endsMs = ({ record }: RecordEntry<KeptPodRecord>): number => toEpochMs(record.pod?.keptUntil) ?? 0;
  const stays = (entry: RecordEntry<KeptPodRecord>): boolean =>
    endsMs(entry) > nowMs &&
    endsMs(entry) <= nowMs + FARTHEST_END_MS &&
    isOfAttempt(entry.record, attemptStartedAt);
  const ends = kept.filter(stays).map(endsMs);
  return {
    remove: kept.filter((entry) => !stays(entry)),
    nextMs: ends.length === 0 ? undefined : Math.min(...ends),
  };
}
