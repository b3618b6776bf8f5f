/** A period in which the coordinator could act without interruption and the wall clock was not changed. */
interface Span {
  readonly wallStartMs: number;
  readonly actedStartMs: number;
  /** The acting time at the span's end. It grows while the span is the newest one. */
  actedEndMs: number;
}

/**
 * The limit of spans. Each stall and each change of the wall clock begins one. Times before the oldest span count in full.
 */
const MAX_SPANS = 64;

/** Translates wall-clock times into acting time. */
export class WallSpans {
  /** The spans, oldest first. Never empty. */
  readonly #spans: Span[];

  constructor(wallStartMs: number) {
    this.#spans = [{ wallStartMs, actedStartMs: 0, actedEndMs: 0 }];
  }

  get count(): number {
    return this.#spans.length;
  }

  /** Extends the newest span to this acting time. */
  extend(actedMs: number): void {
    const newest = this.#spans.at(-1);
    if (newest !== undefined) newest.actedEndMs = actedMs;
  }

  /** Begins a span. Replaces the newest one if it is empty, except the first one, which marks the start of the process. */
  begin(wallStartMs: number, actedMs: number): void {
    const isEmpty = this.#spans.at(-1)?.actedStartMs === actedMs;
    if (this.#spans.length > 1 && isEmpty) this.#spans.pop();
    else if (this.#spans.length === MAX_SPANS) this.#spans.shift();
    this.#spans.push({ wallStartMs, actedStartMs: actedMs, actedEndMs: actedMs });
  }

  /**
   * Returns the acting time at a wall-clock time. The newest span that contains the time decides. A time between two spans
   * counts as the end of the earlier one. A time in the future that no span contains was recorded by an earlier process
   * before the clock was set back: returns minus infinity.
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
