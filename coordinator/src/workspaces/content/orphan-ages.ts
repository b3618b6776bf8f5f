/** Orphans beyond this number are found by later sweeps; each takes some hundred bytes. */
const MAX_TRACKED = 100_000;

/**
 * Measures for how long objects have been orphans: from the first sweep that found them so, by the monotonic clock. Neither a wall
 * clock that jumps nor a restart of the coordinator makes an orphan older than it is.
 */
export class OrphanAges {
  readonly #monotonicMs: () => number;
  #firstSeenMs: ReadonlyMap<string, number> = new Map();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Starts a sweep. */
  begin(): OrphanSweep {
    const seen = new Map<string, number>();
    return {
      isDue: (key, graceMs) => {
        const nowMs = this.#monotonicMs();
        const firstMs = this.#firstSeenMs.get(key) ?? nowMs;
        if (nowMs >= firstMs + graceMs) return true;
        if (seen.size < MAX_TRACKED) seen.set(key, firstMs);
        return false;
      },
      finish: () => {
        this.#firstSeenMs = seen;
      },
    };
  }
}

export interface OrphanSweep {
  /** Records an orphan, and reports whether it has been one for the grace period. */
  isDue(key: string, graceMs: number): boolean;
  /** Forgets the objects that this sweep did not find. If a sweep fails before, all ages stay as they were. */
  finish(): void;
}
