import { BURST_PER_OBJECT, MAX_RATED, REFILL_MS } from "./limits.ts";

interface Bucket {
  /** The time at which the bucket would be full. */
  fullAtMs: number;
  dropped: number;
}

/** Limits the events of each object by a token bucket of its own. Full buckets are deleted. */
export class ObjectRates<K> {
  /** The buckets that are not full, the longest silent first. */
  readonly #buckets = new Map<K, Bucket>();
  readonly #silenced = new Set<K>();

  /** Objects that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token from the object's bucket. Returns false if the bucket is empty, and then counts the event as dropped. */
  take(object: K, nowMs: number): boolean {
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
    this.#forgetFull(nowMs);
    return true;
  }

  /** Returns the objects that may record events again, with the number of their dropped events. Each is returned once. */
  *recovered(nowMs: number): Generator<{ readonly object: K; readonly dropped: number }> {
    for (const object of [...this.#silenced]) {
      const bucket = this.#buckets.get(object);
      const dropped = bucket?.dropped ?? 0;
      // The note takes from the bucket too; it is not to be dropped itself.
      if (bucket !== undefined && !this.take(object, nowMs)) {
        bucket.dropped = dropped;
        continue;
      }
      this.#silenced.delete(object);
      if (bucket !== undefined) bucket.dropped = 0;
      if (dropped > 0) yield { object, dropped };
    }
  }

  /** Reports whether any dropped events have not been reported yet. */
  get waiting(): boolean {
    return this.#silenced.size > 0;
  }

  #forgetFull(nowMs: number): void {
    for (const [object, { fullAtMs }] of this.#buckets) {
      const over = this.#buckets.size > MAX_RATED;
      if (!over && fullAtMs > nowMs) return;
      if (this.#silenced.has(object) && !over) return;
      this.#silenced.delete(object);
      this.#buckets.delete(object);
    }
  }
}
