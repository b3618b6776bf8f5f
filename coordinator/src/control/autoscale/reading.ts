import type { MetricTarget } from "../../model/autoscaling.ts";

/** The current values of a metric, with its target. */
export interface MetricReading {
  readonly target: MetricTarget;
  /** The value for the whole workload. If it is set, the values of `pods` are ignored. */
  readonly total: number | undefined;
  /** The pods that run or are starting, without stopping and ended ones. */
  readonly pods: readonly PodReading[];
}

export interface PodReading {
  readonly name: string;
  readonly ready: boolean;
  /** Whether the pod is starting, so that its value doesn't reflect its share of the load yet. */
  readonly starting: boolean;
  /** The value in the target's unit: cores, bytes, or the unit of the metric. Undefined: unknown. */
  readonly value: number | undefined;
  /** The reason for a missing value, if it is known. */
  readonly problem?: string;
  /** The pod's request for the metric's resource. Undefined if there is none, or if the target is not a Utilization. */
  readonly request: number | undefined;
}

/** The number of replicas that one metric alone needs. */
export interface MetricResult {
  readonly target: MetricTarget;
  /** The value that is compared with the target: a percentage, a mean over pods, or the total. Undefined: unknown. */
  readonly value: number | undefined;
  /** The number of replicas. Undefined: the metric is unknown. */
  readonly replicas: number | undefined;
  /** The reason for an unknown value, or the pods without a value. Empty if the value is complete. */
  readonly message: string;
}
