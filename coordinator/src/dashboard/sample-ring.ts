import type { HistoryView } from "./history-view.ts";

/** Four hours at the interval of the history. Prometheus is for longer times. */
export const MAX_SAMPLES = 480;

/** Holds the newest samples of some quantities, each in a ring of fixed size. */
export class SampleRing<Name extends string> {
  readonly #names: readonly Name[];
  readonly #samples: readonly Float64Array[];
  readonly #intervalMs: number;
  #taken = 0;
  #lastMs = 0;

  constructor(names: readonly Name[], intervalMs: number) {
    this.#names = names;
    this.#samples = names.map(() => new Float64Array(MAX_SAMPLES));
    this.#intervalMs = intervalMs;
  }

  take(now: Readonly<Record<Name, number>>, nowMs: number): void {
    for (const [index, name] of this.#names.entries()) {
      const ring = this.#samples[index];
      if (ring !== undefined) ring[this.#taken % MAX_SAMPLES] = now[name];
    }
    this.#taken++;
    this.#lastMs = nowMs;
  }

  view(): HistoryView<Name> {
    const count = Math.min(this.#taken, MAX_SAMPLES);
    const first = this.#taken - count;
    const oldestFirst = (ring: Float64Array | undefined): number[] =>
      Array.from({ length: count }, (_, index) => ring?.[(first + index) % MAX_SAMPLES] ?? 0);
    const series = Object.fromEntries(
      this.#names.map((name, index) => [name, oldestFirst(this.#samples[index])]),
    ) as Record<Name, number[]>;
    return { startMs: this.#lastMs - (count - 1) * this.#intervalMs, intervalMs: this.#intervalMs, series };
  }
}
