/** The quantities that are sampled of the whole fleet. */
export const FLEET_SERIES = [
  "nodesReady",
  "podsReady",
  "pods",
  "cpuMilli",
  "memoryBytes",
  "restarts",
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
