import type { MetricReading, MetricResult, PodReading } from "./reading.ts";

/** The deviation of value / target from 1 up to which nothing changes, as in Kubernetes. */
export const TOLERANCE = 0.1;
/** The upper bound of rounding errors. Without it, 10 pods at 110 % would need 12 replicas instead of 11. */
const ROUNDING = 1e-9;
/** The largest number of pods that a message names. */
const MAX_NAMED = 3;

/**
 * Returns the number of replicas by Kubernetes' formula, ceil(pods × value / target). Pods with an unknown value count
 * against the change: as using their whole request when scaling down, as idle when scaling up. Starting pods count as idle
 * when scaling up, and are ignored when scaling down. Pure.
 */
export function replicasFor(reading: MetricReading, current: number): MetricResult {
  if (reading.total !== undefined) return forTotal(reading, reading.total, current);
  return reading.target.type === "Value" ? forLargest(reading, current) : forMean(reading, current);
}

/** Evaluates a metric that has one value for the whole workload. */
function forTotal({ target, pods }: MetricReading, total: number, current: number): MetricResult {
  if (target.type === "Value") return forValue({ target, total, pods }, total, current, "");
  if (target.type === "Utilization") {
    const message = "a Utilization target compares with each pod's request: push one value for each pod";
    return { target, value: undefined, replicas: undefined, message };
  }
  const ratio = total / (target.target * Math.max(1, current));
  const replicas = isWithin(ratio) ? current : ceil(total / target.target);
  return { target, value: total / Math.max(1, current), replicas, message: "" };
}

/**
 * Evaluates a metric of which every pod reports the value of the whole workload, such as the length of a queue. The largest
 * value is used, because it is probably the newest.
 */
function forLargest(reading: MetricReading, current: number): MetricResult {
  const { target, pods } = reading;
  const known = pods.flatMap(({ value }) => value ?? []);
  if (known.length === 0) return { target, value: undefined, replicas: undefined, message: unknown(pods) };
  return forValue(reading, Math.max(...known), current, missingText(pods.filter(isMissing)));
}

function forValue(
  { target, pods }: MetricReading,
  value: number,
  current: number,
  message: string,
): MetricResult {
  const ready = pods.filter((pod) => pod.ready).length;
  const ratio = value / target.target;
  if (isWithin(ratio)) return { target, value, replicas: current, message };
  if (ready === 0) return { target, value, replicas: undefined, message: "no pod is ready" };
  return { target, value, replicas: towards(ratio, ceil(ratio * ready), current), message };
}

function forMean({ target, pods: all }: MetricReading, current: number): MetricResult {
  const goal = target.type === "Utilization" ? target.target / 100 : target.target;
  const pods = target.type === "Utilization" ? all.filter(({ request = 0 }) => request > 0) : all;
  const counted = pods.filter((pod) => !pod.starting && pod.value !== undefined);
  const missing = pods.filter(isMissing);
  const starting = pods.filter((pod) => pod.starting);
  if (counted.length === 0) {
    return { target, value: undefined, replicas: undefined, message: unknown(pods) };
  }
  const first = ratioOf(counted, (pod) => pod.value ?? 0, goal);
  const message = missingText(missing);
  const value = first * target.target;
  const grows = first > 1;
  const idle = grows ? starting : [];
  if (missing.length === 0 && idle.length === 0) {
    const replicas = isWithin(first) ? current : towards(first, ceil(first * counted.length), current);
    return { target, value, replicas, message };
  }
  // A pod may use more than it requests, so an unknown pod counts as using at least the target.
  const full = target.type === "Utilization" ? Math.max(1, goal) : goal;
  const supposed = (pod: PodReading): number => {
    if (!pod.starting && pod.value !== undefined) return pod.value;
    return grows ? 0 : full * weightOf(pod);
  };
  const considered = [...counted, ...missing, ...idle];
  const second = ratioOf(considered, supposed, goal);
  // If counting those pods reverses the direction, the number of replicas stays the same.
  const isCertain = !isWithin(second) && second > 1 === grows;
  const replicas = isCertain ? towards(second, ceil(second * considered.length), current) : current;
  return { target, value, replicas, message };
}

function ratioOf(pods: readonly PodReading[], usedBy: (pod: PodReading) => number, goal: number): number {
  const used = pods.reduce((sum, pod) => sum + usedBy(pod), 0);
  const requested = pods.reduce((sum, pod) => sum + weightOf(pod), 0);
  return used / (requested * goal);
}

function weightOf({ request }: PodReading): number {
  return request ?? 1;
}

function isMissing({ starting, value }: PodReading): boolean {
  return !starting && value === undefined;
}

/**
 * Limits the recommendation while a rollout has more pods than replicas, or while fewer are ready: a ratio above 1 never
 * removes replicas, and a ratio below 1 never adds any.
 */
function towards(ratio: number, replicas: number, current: number): number {
  return ratio > 1 ? Math.max(current, replicas) : Math.min(current, replicas);
}

function isWithin(ratio: number): boolean {
  return Math.abs(ratio - 1) <= TOLERANCE + ROUNDING;
}

function ceil(replicas: number): number {
  return Math.max(0, Math.ceil(replicas - ROUNDING));
}

function unknown(pods: readonly PodReading[]): string {
  const lacking = pods.filter((pod) => !pod.starting);
  if (lacking.length > 0) return problemOf(lacking) ?? "nothing was measured or pushed";
  return pods.length === 0 ? "there is no pod to measure" : "no pod has started and become ready";
}

function missingText(missing: readonly PodReading[]): string {
  if (missing.length === 0) return "";
  const named = missing.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : "";
  const problem = problemOf(missing);
  return `unknown for ${named.join(", ")}${more}${problem === undefined ? "" : ` (${problem})`}`;
}

/** Returns the first known problem. Most pods have the same one. */
function problemOf(pods: readonly PodReading[]): string | undefined {
  return pods.find(({ problem = "" }) => problem !== "")?.problem;
}
