import type { AssignmentDelta, AssignmentSnapshot, PodAssignment } from "@forage/proto/forage/agent/v1/agent";

/** One or more successive changes, merged into a single change that is not on disk yet. */
export interface Unwritten {
  /**
   * The cluster's id for a snapshot, whose `pods` are all assigned pods. Undefined for a delta, whose `pods` and
   * `removals` change the journal.
   */
  readonly clusterId: string | undefined;
  readonly revision: bigint;
  readonly lineage: string | undefined;
  readonly pods: ReadonlyMap<string, PodAssignment>;
  readonly removals: ReadonlySet<string>;
}

export function fromSnapshot(
  { revision, pods }: AssignmentSnapshot,
  clusterId: string,
  lineage: string | undefined,
): Unwritten {
  return { clusterId, revision, lineage, pods: byUid(pods), removals: new Set() };
}

export function fromDelta(
  { revision, upserts, removals }: AssignmentDelta,
  lineage: string | undefined,
): Unwritten {
  return { clusterId: undefined, revision, lineage, pods: byUid(upserts), removals: new Set(removals) };
}

export function addDelta(held: Unwritten, delta: AssignmentDelta, lineage: string | undefined): Unwritten {
  const pods = new Map(held.pods);
  const removals = new Set(held.removals);
  for (const pod of delta.upserts) {
    pods.set(pod.uid, pod);
    removals.delete(pod.uid);
  }
  for (const uid of delta.removals) {
    pods.delete(uid);
    removals.add(uid);
  }
  return { clusterId: held.clusterId, revision: delta.revision, lineage, pods, removals };
}

/** Returns the stored pods that the change removes. */
export function removedBy(
  { clusterId, pods, removals }: Unwritten,
  recorded: { keys(): Iterable<string> },
): readonly string[] {
  if (clusterId === undefined) return [...removals];
  return [...recorded.keys()].filter((uid) => !pods.has(uid));
}

function byUid(pods: readonly PodAssignment[]): ReadonlyMap<string, PodAssignment> {
  return new Map(pods.map((pod) => [pod.uid, pod]));
}
