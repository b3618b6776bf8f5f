/** The epoch is in the upper bits, above all revisions that a store can reach in centuries. */
const EPOCH_SHIFT = 40n;

/**
 * A number that never goes back, not even when the store was restored from a backup: each restore begins a new epoch.
 * Agents refuse what is older than what they have.
 */
export function assignmentRevision(epoch: number, revision: number): bigint {
  return (BigInt(epoch) << EPOCH_SHIFT) | BigInt(revision);
}

export function epochOf(assignmentRevision: bigint): number {
  return Number(assignmentRevision >> EPOCH_SHIFT);
}
