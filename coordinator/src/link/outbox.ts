import type { AssignmentDelta, AssignmentSnapshot, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { PodEntry } from "../state/entries.ts";

/** Which version of which pod a session has been sent. */
export type Sent = Map<string, number>;

/**
 * A number that never goes back, not even when the store was restored from a backup: each restore begins a new epoch.
 * Agents refuse what is older than what they have.
 */
export function assignmentRevision(epoch: number, revision: number): bigint {
  return (BigInt(epoch) << 40n) | BigInt(revision);
}

/** Pure: everything assigned to the node. */
export function snapshotOf(pods: readonly PodEntry[], revision: bigint, sent: Sent): AssignmentSnapshot {
  sent.clear();
  for (const pod of pods) sent.set(pod.record.uid, pod.revision);
  return { revision, pods: pods.map(assignmentOf), more: false, claimRemovals: [] };
}

/** Pure: what changed since; undefined if nothing did. Several changes of a pod make one. */
export function deltaOf(
  pods: readonly PodEntry[],
  revision: bigint,
  sent: Sent,
): AssignmentDelta | undefined {
  const upserts = pods.filter((pod) => sent.get(pod.record.uid) !== pod.revision);
  const present = new Set(pods.map((pod) => pod.record.uid));
  const removals = [...sent.keys()].filter((uid) => !present.has(uid));
  if (upserts.length === 0 && removals.length === 0) return undefined;
  for (const pod of upserts) sent.set(pod.record.uid, pod.revision);
  for (const uid of removals) sent.delete(uid);
  return { revision, upserts: upserts.map(assignmentOf), removals, claimRemovals: [], more: false };
}

function assignmentOf({ record }: PodEntry): PodAssignment {
  return {
    uid: record.uid,
    namespace: record.namespace,
    name: record.name,
    workloadKind: record.workloadKind,
    workloadName: record.workloadName,
    labels: record.labels,
    template: record.template,
    specHash: record.templateHash,
    createdAt: record.createdAt,
    stopping: record.stoppingSince !== undefined,
    secrets: [],
    configMaps: [],
    registryCredentials: [],
    claims: [],
    identityToken: undefined,
  };
}
