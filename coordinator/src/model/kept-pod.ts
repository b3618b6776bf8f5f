import { type PodStatus, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { KeptPodRecord, type PodRecord } from "@forage/proto/forage/store/v1/store";
import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";
import { toEpochMs } from "./timestamp.ts";

/** The time for which failed pods are kept: long enough to notice a rollback and read the reason. */
export const KEEP_FAILED_MS = 60 * 60 * 1000;
/** The limit of kept pods of a rollout attempt. Pods of one revision usually fail for the same reason. */
export const KEPT_PODS_MAX = 3;
/**
 * The size above which templates are reduced to names and images of containers, because records are in memory and in
 * backups.
 */
const TEMPLATE_MAX_BYTES = 64 * 1024;

/** Returns the record of a failed pod that is being stopped. `pod` is its record with the stop. */
export function keptPodRecord(
  pod: PodRecord,
  status: PodStatus | undefined,
  attemptStartedAt: Timestamp | undefined,
): KeptPodRecord {
  const template = pod.template && smallTemplate(pod.template);
  return KeptPodRecord.fromPartial({ pod: { ...pod, template }, status, attemptStartedAt });
}

/** Reports whether the record belongs to the rollout attempt that began at this time. */
export function isOfAttempt(
  record: Pick<KeptPodRecord, "attemptStartedAt">,
  startedAt: Timestamp | undefined,
): boolean {
  return startedAt !== undefined && toEpochMs(record.attemptStartedAt) === toEpochMs(startedAt);
}

function smallTemplate(template: PodTemplate): PodTemplate {
  if (PodTemplate.encode(template).finish().byteLength <= TEMPLATE_MAX_BYTES) return template;
  const { container, sidecars, initContainers } = template;
  const named = ({ name, image }: { readonly name: string; readonly image: string }) => ({ name, image });
  return PodTemplate.fromPartial({
    ...(container && { container: named(container) }),
    sidecars: sidecars.map(named),
    initContainers: initContainers.map(named),
  });
}
