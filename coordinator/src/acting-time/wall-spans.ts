/** A stretch of time in which the coordinator could act all the while and its wall clock was not set. */
interface Span {
  readonly wallStartMs: number;
  readonly actedStartMs: number;
  /** Grows while the span is the newest one. */
  actedEndMs: number;
}

/** Each stall and each step of the wall clock begins a span. Times of before the oldest span count in full. */
const MAX_SPANS = 64;

/** Translates times of the wall clock into the time in which the coordinator could act. */
export class WallSpans {
  /** The oldest first; never empty. */
  readonly #spans: Span[];

  constructor(wallStartMs: number) {
    this.#spans = [{ wallStartMs, actedStartMs: 0, actedEndMs: 0 }];
  }

  get count(): number {
    return this.#spans.length;
  }

  /** The newest span lasts until this time. */
  extend(actedMs: number): void {
    const newest = this.#spans.at(-1);
    if (newest !== undefined) newest.actedEndMs = actedMs;
  }

  /** Begins a span. Replaces the newest one if it is empty, unless that is the first one, which marks the start of the process. */
  begin(wallStartMs: number, actedMs: number): void {
    const isEmpty = this.#spans.at(-1)?.actedStartMs === actedMs;
    if (this.#spans.length > 1 && isEmpty) this.#spans.pop();
    else if (this.#spans.length === MAX_SPANS) this.#spans.shift();
    this.#spans.push({ wallStartMs, actedStartMs: actedMs, actedEndMs: actedMs });
  }

  /**
   * Returns the time to act that had passed at a time of the wall clock. The newest span that may hold it decides. A time between
   * two spans is the end of the former. A time in the future that no span holds is from before the clock was set back, in an
   * earlier process: minus infinity.
   */
  actedAt(atMs: number, wallNowMs: number): number {
    const isFuture = atMs > wallNowMs;
    for (let index = this.#spans.length - 1; index >= 0; index--) {
      const span = this.#spans[index];
      if (span === undefined || atMs < span.wallStartMs) continue;
      const actedMs = span.actedStartMs + (atMs - span.wallStartMs);
      if (isFuture && actedMs > span.actedEndMs) continue;
      return Math.min(actedMs, span.actedEndMs);
    }
    const oldest = this.#spans[0];
    if (isFuture || oldest === undefined) return Number.NEGATIVE_INFINITY;
    return oldest.actedStartMs - (oldest.wallStartMs - atMs);
  }
}
