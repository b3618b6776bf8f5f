import type { ScalingSeries } from "../../src/dashboard/history-view.ts";
import { ago, plural } from "../data/format.ts";
import { useSamples } from "../data/use-samples.ts";
import type { WireResource } from "../data/wire.ts";
import { Plot } from "./plot.tsx";

const count = (value: number): string => `${Math.round(value * 10) / 10}`;

export interface AutoscalingProps {
  readonly namespace: string;
  readonly name: string;
  readonly scaling: NonNullable<WireResource["autoscaling"]>;
}

/**
 * Shows the replicas that the autoscaler has chosen for a workload, the reasons, and a graph of the
 * last hours.
 */
export function Autoscaling({ namespace, name, scaling }: AutoscalingProps) {
  const points = useSamples<ScalingSeries>(`history?${new URLSearchParams({ namespace, name })}`);
  return (
    <section class="card" aria-label="Autoscaling">
      <h2>
        Autoscaling{" "}
        <small>
          {scaling.currentReplicas ?? 0} now, {scaling.desiredReplicas ?? 0} desired, from{" "}
          {scaling.minReplicas ?? 0} to {scaling.maxReplicas ?? 0}
        </small>
      </h2>
      <p>{scaling.reason}</p>
      <ul>
        {(scaling.metrics ?? []).map((metric) => (
          <li key={metric.name}>
            <strong>{metric.name}</strong> {metric.value || "unknown"} of {metric.target} ({metric.targetType}
            ): {metric.replicas === undefined ? "? replicas" : plural(metric.replicas, "replica")}{" "}
            {metric.message}
          </li>
        ))}
      </ul>
      {scaling.lastScaledAt && (
        <p class="quiet">
          Last scaled {ago(scaling.lastScaledAt)}: {scaling.lastScaleReason}
        </p>
      )}
      {points !== undefined && (
        <Plot
          title="Replicas"
          times={points.times}
          lines={[
            { name: "current", values: points.current },
            { name: "desired", values: points.desired },
          ]}
          text={count}
        />
      )}
    </section>
  );
}
