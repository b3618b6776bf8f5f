import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { Delta } from "../src/journal/journal.ts";

/** The number of pods that deltas change, small enough that deltas overwrite and remove one another's. */
const PODS = 11;
const UPSERTS = 5;

/** Returns the change that leads to a revision, which is always the same for the revision. */
export function deltaOf(revision: bigint): Delta {
  const at = Number(revision);
  const touched = Array.from({ length: UPSERTS }, (_, index) => `pod-${(at + index * 2) % PODS}`);
  const upserts = touched.map((uid) =>
    PodAssignment.fromPartial({
      uid,
      specHash: `revision-${revision}`,
      labels: { filler: "x".repeat(at % 3000) },
    }),
  );
  return { revision, upserts, removals: [`pod-${(at + 1) % PODS}`, `pod-${(at + 3) % PODS}`] };
}

/** Returns the spec hash by uid after all deltas up to the revision. */
export function expectedAt(revision: bigint): Map<string, string> {
  const pods = new Map<string, string>();
  for (let at = 1n; at <= revision; at++) {
    const { upserts, removals } = deltaOf(at);
    for (const uid of removals) pods.delete(uid);
    for (const pod of upserts) pods.set(pod.uid, pod.specHash);
  }
  return pods;
}
