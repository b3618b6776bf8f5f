import { formatBytes, formatMilliCpu } from "@forage/scheduler";
import type { MetricTarget } from "../../model/autoscaling.ts";
import type { MetricResult } from "./reading.ts";

/** Describes a metric, such as `cpu is at 180% of requests, target 50%`. */
export function metricText({ target, value, message }: MetricResult): string {
  if (value === undefined) return `${target.name} is unknown`;
  const what =
    target.type === "Utilization" ? " of requests" : target.type === "AverageValue" ? " a pod" : "";
  const lacks = message === "" ? "" : ` (${message})`;
  return `${target.name} is at ${valueText(target, value)}${what}, target ${target.text}${lacks}`;
}

/** Formats a value in the notation of the metric's target. */
export function valueText({ name, type }: MetricTarget, value: number): string {
  if (type === "Utilization") return `${Math.round(value)}%`;
  if (name === "cpu") return formatMilliCpu(Math.round(value * 1000));
  if (name === "memory") return formatBytes(Math.round(value));
  return String(Number(value.toPrecision(6)));
}
