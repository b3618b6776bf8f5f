import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import {
  type JobPod,
  KeptPodRecord,
  PodRecord,
  PodTemplateRecord,
} from "@forage/proto/forage/store/v1/store";
import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";
import type { StoreWrite } from "../model/batches.ts";
import { encodePod, encodeRecord } from "../model/codec.ts";
import { hashMessage } from "../model/hash.ts";
import { KEEP_FAILED_MS, keptPodRecord } from "../model/kept-pod.ts";
import { keptPodKey, podKey, podTemplateKey, statusKey } from "../model/keys.ts";
import type { Priority } from "../model/priority.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { workloadKey } from "../model/workload.ts";
import type { PodEntry } from "../state/entries.ts";
import type { Compare } from "../store/index.ts";

/** A new pod for a workload. */
export interface NewPod {
  readonly namespace: string;
  readonly workloadKind: string;
  readonly workloadName: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The reference to the template that `templateWrite` stores. */
  readonly templateRef: string;
  readonly templateHash: string;
  /** The values of the pod's priority class. */
  readonly priority: Priority | undefined;
  /** The job's data in the pod's record. Set for a pod of a job. */
  readonly job?: JobPod;
  /** The host name. Default: the pod's name. */
  readonly hostname?: string;
}

/** A template that pods of a workload share. */
export interface SharedTemplate {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly template: PodTemplate;
}

/** Returns the name under which a workload's template is stored: a hash of its content. */
export function templateRefOf(template: PodTemplate): string {
  return hashMessage(PodTemplate, template);
}

/** Returns the write that stores a template. It has to precede the first pod that refers to it. */
export function templateWrite({ namespace, kind, name, template }: SharedTemplate, ref: string): StoreWrite {
  const record = { namespace, workloadKind: kind, workloadName: name, template };
  const key = podTemplateKey(workloadKey(namespace, kind, name), ref);
  return { compares: [], ops: [{ type: "put", key, value: encodeRecord(PodTemplateRecord, record) }] };
}

/** Returns the record of a new pod, which has no node. */
export function newPodRecord({ priority, labels, ...fields }: NewPod, nowMs: number): PodRecord {
  return PodRecord.fromPartial({
    ...fields,
    labels: { ...labels },
    priority: priority?.value ?? 0,
    neverPreempts: priority?.neverPreempts ?? false,
    createdAt: toTimestamp(nowMs),
  });
}

/** Returns the write that creates the pod's record. Its compare fails if a pod of that name exists. */
export function createPod(record: PodRecord): StoreWrite {
  const key = podKey(record.namespace, record.name);
  return {
    compares: [{ type: "absent", key }],
    ops: [{ type: "put", key, value: encodePod(record) }],
  };
}

/** Returns the write that marks the pod as stopping. Its record is removed when its node reports that the pod is gone. */
export function stopPod(pod: PodEntry, why: string, nowMs: number): StoreWrite {
  return rewritePod(pod, { ...pod.record, stoppingSince: toTimestamp(nowMs), stopReason: why });
}

/** Returns the write that stops a failed pod and keeps a copy of its last status for a while after the pod is gone. */
export function stopFailedPod(
  pod: PodEntry,
  why: string,
  attemptStartedAt: Timestamp | undefined,
  nowMs: number,
): StoreWrite {
  const stoppingSince = toTimestamp(nowMs);
  const keptUntil = toTimestamp(nowMs + KEEP_FAILED_MS);
  const record = { ...pod.record, stoppingSince, stopReason: why, keptUntil };
  const kept = keptPodRecord(record, pod.status, attemptStartedAt);
  const { compares, ops } = rewritePod(pod, record);
  const key = keptPodKey(record.namespace, record.name);
  return { compares, ops: [...ops, { type: "put", key, value: encodeRecord(KeptPodRecord, kept) }] };
}

export function rewritePod(pod: PodEntry, record: PodRecord): StoreWrite {
  return {
    compares: [unchanged(pod)],
    ops: [{ type: "put", key: pod.key, value: encodePod(record) }],
  };
}

/** Returns the write that removes the records of a pod that runs on no node. */
export function forgetPod(pod: PodEntry): StoreWrite {
  const { namespace, name } = pod.record;
  return {
    compares: [unchanged(pod)],
    ops: [
      { type: "delete", key: pod.key },
      { type: "delete", key: statusKey(namespace, name) },
    ],
  };
}

function unchanged(pod: PodEntry): Compare {
  return { type: "mod-revision", key: pod.key, revision: pod.revision };
}
