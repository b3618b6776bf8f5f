/**
 * The most orphans that are tracked at a time, each with some hundred bytes. Later sweeps find the
 * others.
 */
const MAX_TRACKED = 100_000;

/**
 * Measures how long objects have been orphans, by the monotonic clock and from the first sweep that
 * found them so. Neither a jump of the wall clock nor a restart of the coordinator makes an orphan
 * older.
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
  /** Records an orphan. Reports whether it has been one for the grace period. */
  isDue(key: string, graceMs: number): boolean;
  /**
   * Ends the sweep and drops the ages of objects that it did not find. Without this call, for
   * example after a failure, all ages stay.
   */
  finish(): void;
}
