import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry, PodEntry } from "../../state/entries.ts";
import { conditionTaints } from "../../state/node-taints.ts";
import { tieOf } from "../../state/tied-pod.ts";
import { DEFAULT_TOLERATIONS, type DefaultTolerations, type Eviction, evictionOf } from "./eviction-of.ts";

export function noExecuteTaints(node: NodeEntry): NodeTaint[] {
  return [...node.record.taints, ...conditionTaints(node)].filter(({ effect }) => effect === "NoExecute");
}

/**
 * Returns the time at which the pod has to leave its node because of these taints. A pod that is tied to its node by data
 * stays when the node is lost or broken, because the node may return with the data; an operator's taint evicts it. Pure.
 */
export function pendingEviction(
  pod: PodEntry,
  node: NodeEntry,
  taints: readonly NodeTaint[],
  nowMs: number,
  tolerations: DefaultTolerations = DEFAULT_TOLERATIONS,
): Eviction | undefined {
  if (pod.record.stoppingSince !== undefined) return undefined;
  // The pod of a job that was counted as ended runs nothing any more. Only its logs are left.
  if ((pod.record.job?.counted ?? "") !== "") return undefined;
  const own = new Set(node.record.taints.map(({ key }) => key));
  const counted = tieOf(pod) === undefined ? taints : taints.filter(({ key }) => own.has(key));
  // A binding in the future was recorded before the wall clock was set back.
  const early = (toEpochMs(pod.record.boundAt) ?? 0) > nowMs;
  return evictionOf(early ? { ...pod.record, boundAt: undefined } : pod.record, counted, tolerations);
}

/**
 * Reports whether the loss of the node would evict pods of it. Pods that can't be evaluated don't count: the eviction loop
 * reports their errors.
 */
export function hasPodsToReplace(
  state: ClusterView,
  name: string,
  nowMs: number,
  tolerations?: DefaultTolerations,
): boolean {
  const node = state.node(name);
  if (node === undefined) return false;
  const taints = orElse<readonly NodeTaint[]>([], () => noExecuteTaints(node));
  return state
    .podsOnNode(name)
    .some((pod) => orElse(undefined, () => pendingEviction(pod, node, taints, nowMs, tolerations)));
}

function orElse<T>(fallback: T, evaluate: () => T): T {
  try {
    return evaluate();
  } catch {
    return fallback;
  }
}
