import type { ScrapedValue } from "./parse-exposition.ts";

/** The counters of a pod at one moment. */
export interface CounterReading {
  readonly atMs: number;
  readonly sums: ReadonlyMap<string, number>;
}

export interface MetricValues {
  readonly values: Readonly<Record<string, number>>;
  /** The reason for missing values. Empty if each metric has a value, or will have one with the next reading. */
  readonly problem: string;
  readonly counters: CounterReading;
}

/**
 * Converts a pod's samples to values for autoscaling. A gauge's value is its sample. A counter's value is its growth
 * per second, so it takes two samples; a counter that has decreased was reset and has no value this time. Pure.
 */
export function metricValues(
  names: readonly string[],
  found: ReadonlyMap<string, ScrapedValue>,
  before: CounterReading | undefined,
  atMs: number,
): MetricValues {
  const values: Record<string, number> = {};
  const problems: string[] = [];
  const sums = new Map<string, number>();
  for (const name of names) {
    const value = found.get(name);
    if (value === undefined) problems.push(`the pod does not report ${name}`);
    else if (value.type === "unusable") problems.push(`${name} ${value.why}`);
    else if (value.type === "gauge") values[name] = value.sum;
    else {
      sums.set(name, value.sum);
      const rate = rateOf(before, name, value.sum, atMs);
      if (rate !== undefined) values[name] = rate;
    }
  }
  return { values, problem: problems.join("; "), counters: { atMs, sums } };
}

function rateOf(
  before: CounterReading | undefined,
  name: string,
  sum: number,
  atMs: number,
): number | undefined {
  const last = before?.sums.get(name);
  if (before === undefined || last === undefined || sum < last || atMs <= before.atMs) return undefined;
  return ((sum - last) / (atMs - before.atMs)) * 1000;
}
