import type { MetricTarget } from "../../model/autoscaling.ts";

/** A metric as it was found, with what it is steered to. */
export interface MetricReading {
  readonly target: MetricTarget;
  /** One value for the whole workload; those of pods don't count then. */
  readonly total: number | undefined;
  /** Pods that run or will run; no stopping or ended ones. */
  readonly pods: readonly PodReading[];
}

export interface PodReading {
  readonly name: string;
  readonly ready: boolean;
  /** Whether the pod is starting, and its value doesn't reflect its share of the load yet. */
  readonly starting: boolean;
  /** The value in the target's unit: cores, bytes, or whatever the metric counts. Undefined if it is not known. */
  readonly value: number | undefined;
  /** The reason for a missing value, if it is known. */
  readonly problem?: string;
  /** The pod's request for the metric's resource. Undefined if there is none, or if the target is not a Utilization. */
  readonly request: number | undefined;
}

/** The number of replicas that one metric alone needs. */
export interface MetricResult {
  readonly target: MetricTarget;
  /** Compared with the target: percent, a mean over pods, or the value. Undefined: not known. */
  readonly value: number | undefined;
  /** Undefined: it calls for nothing, since it isn't known. */
  readonly replicas: number | undefined;
  /** The reason for an unknown value, or the pods without one. Empty if the value is complete. */
  readonly message: string;
}
