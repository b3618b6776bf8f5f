import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { nodeProblems } from "../model/node-conditions.ts";
import type { NodeEntry } from "./entries.ts";

export const UNREACHABLE_TAINT = "node.kubernetes.io/unreachable";
export const NOT_READY_TAINT = "node.kubernetes.io/not-ready";

/**
 * Returns the taints that follow from a node's state. A node with a problem gets no new pods. Existing pods are evicted
 * only once the loss is stored, so that their tolerations count from then even after a restart of the coordinator. Pure.
 */
export function conditionTaints({ health, record, report }: NodeEntry): NodeTaint[] {
  const taints: NodeTaint[] = [];
  const away = health.ready ? undefined : health.sinceMs === undefined ? NOT_READY_TAINT : UNREACHABLE_TAINT;
  const keys = new Set(nodeProblems(report?.report).map(({ taint }) => taint));
  if (away !== undefined) keys.add(away);
  for (const key of keys) taints.push({ key, value: "", effect: "NoSchedule", addedAt: undefined });
  if (away === UNREACHABLE_TAINT && record.unreachableSince !== undefined)
    taints.push({ key: UNREACHABLE_TAINT, value: "", effect: "NoExecute", addedAt: record.unreachableSince });
  if (keys.has(NOT_READY_TAINT) && record.notReadySince !== undefined)
    taints.push({ key: NOT_READY_TAINT, value: "", effect: "NoExecute", addedAt: record.notReadySince });
  return taints;
}

/** Reports whether the node itself reports that it isn't ready. Pure. */
export function isNotReady({ report }: NodeEntry): boolean {
  return nodeProblems(report?.report).some(({ taint }) => taint === NOT_READY_TAINT);
}
