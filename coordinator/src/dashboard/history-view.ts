/** The quantities that are sampled of the whole fleet. */
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

/** The quantities that are sampled of each autoscaled workload. */
export const SCALING_SERIES = ["current", "desired"] as const;
export type ScalingSeries = (typeof SCALING_SERIES)[number];

/** The quantities that are sampled of each node and pod. */
export const USAGE_SERIES = ["cpuMilli", "memoryBytes"] as const;
export type UsageSeries = (typeof USAGE_SERIES)[number];

export interface HistoryView<Name extends string> {
  /** The time of the first sample, in milliseconds since the epoch. */
  readonly startMs: number;
  readonly intervalMs: number;
  /** The samples of each series, oldest first. Null: not known. */
  readonly series: Readonly<Record<Name, readonly (number | null)[]>>;
}

/** The newest values and their time. */
export interface PresentPoint<Name extends string> {
  /** In milliseconds since the epoch. */
  readonly nowMs: number;
  /** Null: not known. */
  readonly now: Readonly<Record<Name, number | null>>;
}

/** Samples, and the newest values, which the next sample may come long after. */
export interface PresentView<Name extends string> extends HistoryView<Name>, PresentPoint<Name> {}
