import type { NodeSpec, Taint, Toleration } from "../types.ts";

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

type Tolerations = readonly Toleration[] | undefined;

export function tolerates(tolerations: Tolerations, taint: Taint): boolean {
  return tolerations?.some((toleration) => toleratesOne(toleration, taint)) ?? false;
}

/** Returns the first taint that the pod does not tolerate. */
export function repellingTaint(tolerations: Tolerations, node: NodeSpec): Taint | undefined {
  return node.taints?.find((taint) => taint.effect !== "PreferNoSchedule" && !tolerates(tolerations, taint));
}

/** Returns the number of PreferNoSchedule taints that the pod does not tolerate. */
export function reluctantTaints(tolerations: Tolerations, node: NodeSpec): number {
  let count = 0;
  for (const taint of node.taints ?? []) {
    if (taint.effect === "PreferNoSchedule" && !tolerates(tolerations, taint)) count++;
  }
  return count;
}

export function toleratesUnschedulable(tolerations: Tolerations): boolean {
  return tolerates(tolerations, UNSCHEDULABLE);
}

export function formatTaint(taint: Taint): string {
  return `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;
}

function toleratesOne({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key && key !== taint.key) return false;
  if (operator === "Exists") return true;
  return Boolean(key) && (value ?? "") === (taint.value ?? "");
}
