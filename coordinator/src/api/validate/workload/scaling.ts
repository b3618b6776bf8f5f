import type { AutoscalingPolicy, CustomMetric, ScalingPolicy } from "@forage/proto/forest/v1/forage";
import { MAX_REPLICAS } from "../../../model/workload.ts";
import type { Field } from "../field.ts";
import { durationProblem } from "../syntax/duration.ts";
import { metricNameProblem } from "../syntax/metric-name.ts";
import { countProblem, rangeProblem } from "../syntax/numbers.ts";
import { amountOf } from "../syntax/quantity.ts";
import { requiredChoiceProblem } from "../syntax/text.ts";

/** The limit of metrics, because each is read in every evaluation of the autoscaler. */
const MAX_METRICS = 50;
/** Kubernetes' limit of the stabilization window in seconds. */
const MAX_STABILIZATION_SECONDS = 3600;

export function validateScaling({ replicas, autoscaling }: ScalingPolicy, field: Field): void {
  if (replicas > MAX_REPLICAS) field.at("replicas").invalid(`must be at most ${MAX_REPLICAS}`);
  if (autoscaling !== undefined) validateAutoscaling(autoscaling, field.at("autoscaling"));
}

function validateAutoscaling(policy: AutoscalingPolicy, field: Field): void {
  field.at("max_replicas").check(rangeProblem(policy.maxReplicas, 1, MAX_REPLICAS));
  if (policy.minReplicas > policy.maxReplicas)
    field.at("min_replicas").invalid("must not be more than max_replicas");
  field.at("target_cpu_utilization_percent").check(countProblem(policy.targetCpuUtilizationPercent));
  field.at("target_memory_utilization_percent").check(countProblem(policy.targetMemoryUtilizationPercent));
  if (policy.scaleDownStabilization !== undefined) {
    const problem = durationProblem(policy.scaleDownStabilization, MAX_STABILIZATION_SECONDS);
    field.at("scale_down_stabilization").check(problem);
  }
  const metrics = field.at("custom_metrics");
  if (policy.customMetrics.length > MAX_METRICS) metrics.invalid(`must be at most ${MAX_METRICS}`);
  for (const [index, metric] of policy.customMetrics.entries()) validateMetric(metric, metrics.item(index));
}

function validateMetric({ name, targetType, targetValue }: CustomMetric, field: Field): void {
  const isPlain = targetType === "Utilization" || !name.includes("/");
  field.at("name").check(metricNameProblem(name) ?? (isPlain ? undefined : "must not contain '/'"));
  field.at("target_type").check(requiredChoiceProblem(targetType, ["Value", "AverageValue", "Utilization"]));
  field.at("target_value").check(targetProblem(targetType, targetValue));
}

function targetProblem(type: string, value: string): string | undefined {
  if (type === "Utilization" && !/^[1-9]\d{0,8}%?$/.test(value)) return "must be a percentage such as 70";
  if (type === "Utilization") return undefined;
  const { nano, problem } = amountOf("", value);
  return nano === 0n ? "must be more than 0" : problem;
}
