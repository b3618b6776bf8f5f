import type { HistoryView, PresentView } from "./history-view.ts";

export interface SampleRingOptions<Name extends string> {
  readonly names: readonly Name[];
  /** The time between two samples. */
  readonly intervalMs: number;
  /** The number of samples that are kept. */
  readonly maxSamples: number;
}

/**
 * Holds the newest samples of several quantities in a ring of fixed size. NaN is an unknown value.
 */
export class SampleRing<Name extends string> {
  readonly #options: SampleRingOptions<Name>;
  /**
   * The samples in succession, each with a value for every name. Seven digits are enough for a
   * graph.
   */
  readonly #values: Float32Array;
  #taken = 0;
  #lastMs = 0;

  constructor(options: SampleRingOptions<Name>) {
    this.#options = options;
    this.#values = new Float32Array(options.names.length * options.maxSamples);
  }

  get byteLength(): number {
    return this.#values.byteLength;
  }

  push(now: Readonly<Record<Name, number>>, nowMs: number): void {
    const { names, maxSamples } = this.#options;
    const start = (this.#taken % maxSamples) * names.length;
    for (const [index, name] of names.entries()) this.#values[start + index] = now[name];
    this.#taken++;
    this.#lastMs = nowMs;
  }

  /** Returns the samples, with the last one as the newest values. */
  presentView(): PresentView<Name> {
    const view = this.view();
    const now = Object.fromEntries(
      this.#options.names.map((name) => [name, view.series[name].at(-1) ?? null]),
    ) as Record<Name, number | null>;
    return { ...view, nowMs: this.#lastMs, now };
  }

  view(): HistoryView<Name> {
    const { names, maxSamples, intervalMs } = this.#options;
    const count = Math.min(this.#taken, maxSamples);
    const first = this.#taken - count;
    const valueAt = (sample: number, name: number): number | null => {
      const value = this.#values[((first + sample) % maxSamples) * names.length + name] ?? Number.NaN;
      return Number.isNaN(value) ? null : value;
    };
    const series = Object.fromEntries(
      names.map((name, index) => [
        name,
        Array.from({ length: count }, (_, sample) => valueAt(sample, index)),
      ]),
    ) as Record<Name, (number | null)[]>;
    return { startMs: this.#lastMs - (count - 1) * intervalMs, intervalMs, series };
  }
}
