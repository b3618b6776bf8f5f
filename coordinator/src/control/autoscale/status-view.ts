import type { AutoscalingMetric, AutoscalingStatus } from "@forage/proto/forage/operator/v1/operator";
import type { ScaleRecord } from "@forage/proto/forage/store/v1/store";
import type { Autoscaling } from "../../model/autoscaling.ts";
import { valueText } from "./metric-text.ts";
import type { MetricResult } from "./reading.ts";
import type { Recommendation } from "./recommend.ts";

/** Returns the last evaluation in the form that the API returns. */
export function statusView(
  look: { readonly result: Recommendation; readonly policy: Autoscaling; readonly current: number },
  scale: ScaleRecord | undefined,
): AutoscalingStatus {
  const { result, policy, current } = look;
  return {
    minReplicas: policy.minReplicas,
    maxReplicas: policy.maxReplicas,
    currentReplicas: current,
    desiredReplicas: result.replicas,
    reason: result.reason,
    metrics: result.metrics.map(metricView),
    conditions: result.conditions.map((condition) => ({ ...condition })),
    lastScaledAt: scale?.scaledAt,
    lastScaleReason: scale?.reason ?? "",
  };
}

function metricView({ target, value, replicas, message }: MetricResult): AutoscalingMetric {
  return {
    name: target.name,
    targetType: target.type,
    target: target.text,
    value: value === undefined ? "" : valueText(target, value),
    replicas,
    message,
  };
}
