import type { Taint, UpdateNodeRequest, UpdateNodeResponse } from "@forage/proto/forage/operator/v1/operator";
import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { validateUpdateNode } from "../validate/update-node.ts";
import { changeNode } from "./change-node.ts";
import { nodeView } from "./node-view.ts";
import type { GatewayStatuses } from "./route-view.ts";

export interface UpdateNodeOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly gateways: GatewayStatuses;
}

/**
 * Changes the node's labels, taints and cordon. Uncordoning also ends a drain. @throws CoordinatorError INVALID, NOT_FOUND,
 * or CONFLICT if the record changes repeatedly.
 */
export async function updateNode(
  request: UpdateNodeRequest,
  options: UpdateNodeOptions,
): Promise<UpdateNodeResponse> {
  validateUpdateNode(request);
  const nowMs = options.clock.nowMs();
  const node = await changeNode(request.name, options, ({ record }) => {
    const unschedulable = request.unschedulable ?? record.unschedulable;
    const drain = unschedulable ? record.drain : undefined;
    const taints = changedTaints(record.taints, request, nowMs);
    return { ...record, unschedulable, drain, taints, labels: changedLabels(record.labels, request) };
  });
  return { node: nodeView(options.state, node, options.gateways) };
}

function changedLabels(
  labels: Readonly<Record<string, string>>,
  { setLabels, removeLabels }: UpdateNodeRequest,
): Record<string, string> {
  const stay = Object.entries(labels).filter(([key]) => !removeLabels.includes(key));
  return { ...Object.fromEntries(stay), ...setLabels };
}

/** Returns the changed taints. An existing taint keeps the time at which it was added. */
function changedTaints(
  taints: readonly NodeTaint[],
  { setTaints, removeTaints }: UpdateNodeRequest,
  nowMs: number,
): NodeTaint[] {
  const stays = taints.filter(
    ({ key, effect }) =>
      !removeTaints.some((it) => it.key === key && (it.effect === "" || it.effect === effect)) &&
      !setTaints.some((it) => it.key === key && it.effect === effect),
  );
  const set = setTaints.map((taint): NodeTaint => {
    const before = taints.find((it) => same(it, taint));
    return { ...taint, addedAt: before?.addedAt ?? toTimestamp(nowMs) };
  });
  return [...stays, ...set];
}

function same(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect && a.value === b.value;
}
