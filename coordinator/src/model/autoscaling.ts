import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { AutoscalingPolicy, ContainerServiceSpec, CustomMetric } from "@forage/proto/forest/v1/forage";
import { NANO_PER_UNIT, parseQuantity } from "@forage/scheduler";

/** The metrics that agents measure. Custom metrics with these names come from agents as well. */
export const MEASURED_RESOURCES = ["cpu", "memory"] as const;

/** The policy by which a workload's number of replicas follows its metrics. */
export interface Autoscaling {
  /** The lower limit of replicas, at least 1. */
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** The targets: at least one, without duplicates of name and type. */
  readonly metrics: readonly MetricTarget[];
  /** The stabilization window in milliseconds: scaling down goes to the highest recommendation within it. */
  readonly stabilizationMs: number;
}

export type TargetType = "Value" | "AverageValue" | "Utilization";

export interface MetricTarget {
  /** The name of the metric: "cpu", "memory", or that of a custom metric. */
  readonly name: string;
  readonly type: TargetType;
  /**
   * The target, more than 0: a percentage of the requests for Utilization, otherwise in cores, bytes or the unit of the
   * metric.
   */
  readonly target: number;
  /** The target as it was written. */
  readonly text: string;
}

/** The port, path and scheme at which a pod reports its own metrics, from its annotations. */
export interface ScrapeTarget {
  readonly port: number;
  readonly path: string;
  readonly scheme: "http" | "https";
}

export const METRICS_ANNOTATIONS = {
  port: "forage.dev/metrics-port",
  path: "forage.dev/metrics-path",
  scheme: "forage.dev/metrics-scheme",
} as const;

/** Returns what is wrong with the annotation's value. Undefined: it is valid, or the annotation is not about metrics. */
export function metricsAnnotationProblem(name: string, value: string): string | undefined {
  switch (name) {
    case METRICS_ANNOTATIONS.port:
      return /^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65_535
        ? undefined
        : "must be the number of a port from 1 to 65535";
    case METRICS_ANNOTATIONS.path:
      // The path becomes part of an HTTP request line.
      return /^\/[\x21-\x7e]{0,1023}$/.test(value)
        ? undefined
        : "must begin with '/' and have at most 1024 characters, none of them blank";
    case METRICS_ANNOTATIONS.scheme:
      return value === "http" || value === "https" ? undefined : "must be http or https";
    default:
      return undefined;
  }
}

/** The default stabilization window. Kubernetes' value. */
const DEFAULT_STABILIZATION_MS = 300_000;

/** Returns the autoscaling policy. Undefined: the number of replicas is fixed by the resource. */
export function autoscalingOf({ scaling }: ContainerServiceSpec): Autoscaling | undefined {
  const policy = scaling?.autoscaling;
  if (policy === undefined) return undefined;
  const { scaleDownStabilization: window } = policy;
  const maxReplicas = Math.max(1, policy.maxReplicas);
  return {
    minReplicas: Math.min(maxReplicas, Math.max(1, policy.minReplicas)),
    maxReplicas,
    metrics: metricsOf(policy),
    stabilizationMs:
      window === undefined ? DEFAULT_STABILIZATION_MS : Number(window.seconds) * 1000 + window.nanos / 1e6,
  };
}

/** Returns the number of replicas within the policy's limits that is nearest to the given one. */
export function clamp(replicas: number, { minReplicas, maxReplicas }: Autoscaling): number {
  return Math.min(maxReplicas, Math.max(minReplicas, replicas));
}

/** Returns where the pods report metrics. Undefined: they report none. */
export function scrapeTargetOf(template: PodTemplate | undefined): ScrapeTarget | undefined {
  const annotations = template?.podConfig?.annotations ?? {};
  const port = Number(annotations[METRICS_ANNOTATIONS.port]);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined;
  return {
    port,
    path: annotations[METRICS_ANNOTATIONS.path] ?? "/metrics",
    scheme: annotations[METRICS_ANNOTATIONS.scheme] === "https" ? "https" : "http",
  };
}

/** Returns the value of a quantity such as `1500m` or `2k`. Throws SchedulerError if it is invalid. */
export function numberOf(quantity: string): number {
  const nano = parseQuantity(quantity);
  // Converts in two parts, because a double can't represent large numbers of billionths exactly.
  return Number(nano / NANO_PER_UNIT) + Number(nano % NANO_PER_UNIT) / Number(NANO_PER_UNIT);
}

function metricsOf(policy: AutoscalingPolicy): MetricTarget[] {
  const { targetCpuUtilizationPercent: cpu, targetMemoryUtilizationPercent: memory } = policy;
  return [
    ...utilization("cpu", cpu),
    ...utilization("memory", memory),
    ...policy.customMetrics.map(customOf),
  ];
}

function utilization(name: string, percent: number): MetricTarget[] {
  return percent === 0 ? [] : [{ name, type: "Utilization", target: percent, text: `${percent}%` }];
}

function customOf({ name, targetType, targetValue }: CustomMetric): MetricTarget {
  if (targetType === "Utilization") {
    const percent = Number.parseInt(targetValue, 10);
    return { name, type: "Utilization", target: percent, text: `${percent}%` };
  }
  const type = targetType === "Value" ? "Value" : "AverageValue";
  return { name, type, target: numberOf(targetValue), text: targetValue };
}
