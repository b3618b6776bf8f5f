/** The log of one run with all its files. */
export interface StoredLog {
  readonly path: string;
  /** The size on disk. */
  readonly bytes: number;
  /** The time of the last write to the log, in milliseconds since the epoch. */
  readonly changedMs: number;
  /** Whether a newer run of the container has a log too. */
  readonly superseded: boolean;
}

export interface LogLimitPlan {
  readonly remove: readonly StoredLog[];
  /** Logs to reduce to their last lines. */
  readonly shrink: readonly StoredLog[];
}

// Frees more than necessary, so that the next line doesn't reach the limit again.
const FREE_SHARE = 0.1;

/**
 * Plans deletions so that all logs of the node fit: first ended runs, the oldest first, then the largest logs of
 * current runs.
 */
export function planLogLimit(logs: readonly StoredLog[], limitBytes: number): LogLimitPlan {
  let excess = logs.reduce((sum, { bytes }) => sum + bytes, 0) - limitBytes;
  if (excess <= 0) return { remove: [], shrink: [] };
  excess += limitBytes * FREE_SHARE;
  const selectWhileOver = (candidates: readonly StoredLog[]) =>
    candidates.filter(({ bytes }) => {
      if (excess <= 0) return false;
      excess -= bytes;
      return true;
    });
  const over = logs.filter((it) => it.superseded).sort((a, b) => a.changedMs - b.changedMs);
  const present = logs.filter((it) => !it.superseded && it.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  return { remove: selectWhileOver(over), shrink: selectWhileOver(present) };
}

/** Returns the default limit: a tenth of the disk, but no more than people can usefully search. */
export function defaultLogLimit(diskBytes: number): number {
  return Math.min(diskBytes / 10, 5 * 2 ** 30);
}
