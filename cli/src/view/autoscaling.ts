import type { AutoscalingMetric, AutoscalingStatus } from "@forage/proto/forage/operator/v1/operator";
import type { Paint } from "../output/paint.ts";
import { renderEntries } from "../output/sections.ts";
import { type Column, renderTable } from "../output/table.ts";
import { age, dateTime } from "./timestamp.ts";

/** Describes the state of a workload's autoscaler; empty if it has none. */
export function describeAutoscaling(
  status: AutoscalingStatus | undefined,
  nowMs: number,
  paint: Paint,
): string {
  if (status === undefined) return "";
  const { minReplicas, maxReplicas, currentReplicas, desiredReplicas, lastScaledAt } = status;
  const last =
    lastScaledAt === undefined
      ? "never"
      : `${dateTime(lastScaledAt)} (${age(lastScaledAt, nowMs)} ago)\n${status.lastScaleReason}`;
  const entries = renderEntries(
    [
      ["Replicas", `${currentReplicas}, from ${minReplicas} to ${maxReplicas}`],
      ["Desired", desiredReplicas === currentReplicas ? "" : String(desiredReplicas)],
      ["Decision", status.reason],
      ["Last change", last],
      ["Conditions", status.conditions.map(conditionText).join("\n")],
    ],
    paint,
  );
  return `${entries}\n${renderTable(columns, status.metrics, { wide: false, paint })}`;
}

const columns: readonly Column<AutoscalingMetric>[] = [
  { title: "METRIC", value: ({ name }) => name },
  { title: "TYPE", value: ({ targetType }) => targetType },
  { title: "VALUE", value: ({ value }) => value || "?", alignRight: true },
  { title: "TARGET", value: ({ target }) => target, alignRight: true },
  {
    title: "REPLICAS",
    value: ({ replicas }) => (replicas === undefined ? "" : String(replicas)),
    alignRight: true,
  },
  { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
];

function conditionText({ type, status, reason, message }: AutoscalingStatus["conditions"][number]): string {
  return `${type} ${status ? "yes" : "no"} (${reason})${message === "" ? "" : `: ${message}`}`;
}
