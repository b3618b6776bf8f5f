import { type Autoscaling, clamp } from "../../model/autoscaling.ts";
import { highestRecommendation, periodStart, type ScaleHistory, withRecommendation } from "./history.ts";
import { metricText } from "./metric-text.ts";
import type { MetricReading, MetricResult } from "./reading.ts";
import { replicasFor } from "./replicas-for.ts";

export interface RecommendInput {
  /** The current number of replicas, within the policy's limits. */
  readonly current: number;
  readonly policy: Autoscaling;
  /** The readings of each of the policy's metrics. */
  readonly readings: readonly MetricReading[];
  readonly history: ScaleHistory;
  /** The time of the history's clock. */
  readonly nowMs: number;
}

export interface Recommendation {
  readonly replicas: number;
  /** A message for people, with the values that led to the recommendation. */
  readonly reason: string;
  readonly metrics: readonly MetricResult[];
  readonly conditions: readonly ScaleCondition[];
  /** The history to pass to the next evaluation. */
  readonly history: ScaleHistory;
}

export interface ScaleCondition {
  readonly type: "AbleToScale" | "ScalingActive" | "ScalingLimited";
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

/** The number of replicas that may be added within the growth period whatever the current number is. */
const LEAST_GROWTH = 4;

/** Returns the recommended number of replicas with its reason, metrics and conditions. Pure. */
export function recommend(input: RecommendInput): Recommendation {
  const { current, policy, nowMs } = input;
  const metrics = input.readings.map((reading) => replicasFor(reading, current));
  const { needed, why, active } = largest(metrics, current);
  const history = withRecommendation(input.history, needed, policy.stabilizationMs, nowMs);
  const steady = Math.max(
    needed,
    Math.min(current, highestRecommendation(history, policy.stabilizationMs, nowMs)),
  );
  const able = ableToScale(needed, steady, policy);
  const { replicas, limited } = withinLimits(steady, input);
  return {
    replicas,
    reason: sentence(current, replicas, [
      why,
      ...[able, limited].flatMap(({ status, ...it }) => said(status, it)),
    ]),
    metrics,
    conditions: [able, active, limited],
    history,
  };
}

interface Need {
  readonly needed: number;
  readonly why: string;
  readonly active: ScaleCondition;
}

/** Returns the highest number of replicas that a metric requires, but never fewer than now while a metric is unknown. */
function largest(metrics: readonly MetricResult[], current: number): Need {
  const known = metrics.filter((metric) => metric.replicas !== undefined);
  const unknown = metrics.filter((metric) => metric.replicas === undefined);
  const lacks = unknown.map(({ target, message }) => `${target.name}: ${message}`).join("; ");
  if (known.length === 0) {
    const active = condition("ScalingActive", false, "MetricsMissing", lacks);
    return { needed: current, why: `all metrics are unknown (${lacks})`, active };
  }
  const top = known.reduce((a, b) => ((b.replicas ?? 0) > (a.replicas ?? 0) ? b : a));
  const needed = top.replicas ?? current;
  const active =
    unknown.length === 0
      ? condition("ScalingActive", true, "MetricsKnown", "")
      : condition("ScalingActive", true, "MetricsMissing", lacks);
  if (unknown.length > 0 && needed < current)
    return { needed: current, why: `not scaled down while a metric is unknown (${lacks})`, active };
  return { needed, why: metricText(top), active };
}

function ableToScale(needed: number, steady: number, { stabilizationMs }: Autoscaling): ScaleCondition {
  if (steady === needed) return condition("AbleToScale", true, "Ready", "");
  const message = `${needed} replicas are enough now, but within the last ${stabilizationMs / 1000} s ${steady} were needed`;
  return condition("AbleToScale", true, "ScaleDownStabilized", message);
}

function withinLimits(
  steady: number,
  { policy, current, history, nowMs }: RecommendInput,
): { readonly replicas: number; readonly limited: ScaleCondition } {
  const start = periodStart(history, current, nowMs);
  const allowed = clamp(steady, policy);
  const growth = Math.max(current, start + LEAST_GROWTH, start * 2);
  const limit = (reason: string, message: string) => condition("ScalingLimited", true, reason, message);
  if (allowed > growth) {
    const message = `${allowed} replicas are needed, but ${start} may grow to at most ${growth} within 15 s`;
    return { replicas: growth, limited: limit("ScaleUpLimit", message) };
  }
  if (allowed < steady)
    return {
      replicas: allowed,
      limited: limit(
        "TooManyReplicas",
        `${steady} replicas are needed, but max_replicas is ${policy.maxReplicas}`,
      ),
    };
  if (allowed > steady)
    return {
      replicas: allowed,
      limited: limit(
        "TooFewReplicas",
        `${steady} replicas are enough, but min_replicas is ${policy.minReplicas}`,
      ),
    };
  return { replicas: allowed, limited: condition("ScalingLimited", false, "WithinLimits", "") };
}

function condition(
  type: ScaleCondition["type"],
  status: boolean,
  reason: string,
  message: string,
): ScaleCondition {
  return { type, status, reason, message };
}

function said(status: boolean, { message }: { readonly message: string }): string[] {
  return status && message !== "" ? [message] : [];
}

function sentence(current: number, replicas: number, parts: readonly string[]): string {
  const change = replicas === current ? `stays at ${current}` : `${current} → ${replicas}`;
  return `${change}: ${parts.join("; ")}`;
}
