import { ADDED_BETWEEN_SEARCHES, BURST_PER_OBJECT, MAX_RATED, REFILL_MS } from "./limits.ts";

interface Bucket {
  /** The time at which the bucket is full. */
  fullAtMs: number;
  dropped: number;
}

/** Limits the events of each object by its own token bucket. Full buckets are deleted. */
export class ObjectRates<K> {
  /** The buckets that are not full, least recently active first. */
  readonly #buckets = new Map<K, Bucket>();
  readonly #silenced = new Set<K>();
  /** The number of taken tokens since the last search for full buckets. */
  #taken = 0;

  /** The number of tracked objects. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Takes a token from the object's bucket. If the bucket is empty, returns false and counts the
   * event as dropped.
   */
  tryAcquire(object: K, nowMs: number): boolean {
    const bucket = this.#buckets.get(object) ?? { fullAtMs: nowMs, dropped: 0 };
    this.#buckets.delete(object);
    this.#buckets.set(object, bucket);
    const fullAtMs = Math.max(bucket.fullAtMs, nowMs) + REFILL_MS;
    if (fullAtMs - nowMs > BURST_PER_OBJECT * REFILL_MS) {
      bucket.dropped++;
      this.#silenced.add(object);
      return false;
    }
    bucket.fullAtMs = fullAtMs;
    if (++this.#taken >= ADDED_BETWEEN_SEARCHES) this.#forgetFull(nowMs);
    return true;
  }

  /**
   * Yields each object that may record events again once, with the number of its dropped events.
   */
  *recovered(nowMs: number): Generator<{ readonly object: K; readonly dropped: number }> {
    for (const object of [...this.#silenced]) {
      const bucket = this.#buckets.get(object);
      const dropped = bucket?.dropped ?? 0;
      // The event that reports the dropped ones takes a token as well; otherwise it could be
      // dropped itself.
      if (bucket !== undefined && !this.tryAcquire(object, nowMs)) {
        bucket.dropped = dropped;
        continue;
      }
      this.#silenced.delete(object);
      if (bucket !== undefined) bucket.dropped = 0;
      if (dropped > 0) yield { object, dropped };
    }
  }

  /** Reports whether there are unreported dropped events. */
  get waiting(): boolean {
    return this.#silenced.size > 0;
  }

  #forgetFull(nowMs: number): void {
    this.#taken = 0;
    for (const [object, { fullAtMs }] of this.#buckets) {
      const over = this.#buckets.size > MAX_RATED;
      if (!over && fullAtMs > nowMs) return;
      if (this.#silenced.has(object) && !over) return;
      this.#silenced.delete(object);
      this.#buckets.delete(object);
    }
  }
}
