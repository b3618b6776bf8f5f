/** The quantities sampled for the whole fleet. */
export const FLEET_SERIES = [
  "nodesReady",
  "podsReady",
  "pods",
  "cpuMilli",
  "memoryBytes",
  "restarts",
  "requests",
  "errors",
] as const;
export type FleetSeries = (typeof FLEET_SERIES)[number];

/** The quantities sampled for each autoscaled workload. */
export const SCALING_SERIES = ["current", "desired"] as const;
export type ScalingSeries = (typeof SCALING_SERIES)[number];

/** The quantities sampled for each node and pod. */
export const USAGE_SERIES = ["cpuMilli", "memoryBytes"] as const;
export type UsageSeries = (typeof USAGE_SERIES)[number];

export interface HistoryView<Name extends string> {
  /** The time of the first sample, in milliseconds since the epoch. */
  readonly startMs: number;
  readonly intervalMs: number;
  /** The samples of each series, oldest first; null is an unknown value. */
  readonly series: Readonly<Record<Name, readonly (number | null)[]>>;
}

/** The newest values with their time. */
export interface PresentPoint<Name extends string> {
  /** The time of the values, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** The newest value of each series; null is an unknown value. */
  readonly now: Readonly<Record<Name, number | null>>;
}

/**
 * The samples together with the newest values, because the next sample may be far in the future.
 */
export interface PresentView<Name extends string> extends HistoryView<Name>, PresentPoint<Name> {}
