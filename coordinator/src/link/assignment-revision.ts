/** The position of the epoch in the number, above all revisions that a store can reach in centuries. */
const EPOCH_SHIFT = 40n;

/**
 * Returns the revision of an assignment, which never decreases: each restore of the store begins a new epoch in the upper
 * bits. Agents reject assignments that are older than the current one.
 */
export function assignmentRevision(epoch: number, revision: number): bigint {
  return (BigInt(epoch) << EPOCH_SHIFT) | BigInt(revision);
}

export function epochOf(assignmentRevision: bigint): number {
  return Number(assignmentRevision >> EPOCH_SHIFT);
}
