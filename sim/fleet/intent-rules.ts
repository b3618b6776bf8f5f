import { PodRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../../coordinator/src/model/codec.ts";
import { PREFIXES, resourceKey } from "../../coordinator/src/model/keys.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { PodEntry } from "../../coordinator/src/state/entries.ts";
import type { Op } from "../../coordinator/src/store/index.ts";
import { isOfPoison } from "./poison-store.ts";
import { rollingLimitsOf } from "./rolling-limits.ts";

/** Matches reasons of stops that no rollout caused. The limits of updates don't apply to them. */
const FORCED = /taint|drain|evict|room|ended|deleted|preempt|unreachable|lost|forgotten|rebalance/i;

/**
 * Returns the fault of a write, judged by the view on which it was based: a rollout must not stop pods that are needed.
 * Pods that became unready in the same moment don't count, because the coordinator can't know of them.
 */
export function wrongStops(state: ClusterView, ops: readonly Op[]): string | undefined {
  const stops = new Map<string, { readonly pod: PodEntry; readonly why: string }[]>();
  for (const op of ops) {
    if (op.type !== "put" || !op.key.startsWith(PREFIXES.pods) || isOfPoison(op.key)) continue;
    const record = decodeRecord(PodRecord, op.key, op.value);
    const pod = state.pod(record.namespace, record.name);
    if (pod === undefined || pod.record.stoppingSince !== undefined || record.stoppingSince === undefined)
      continue;
    const found = stops.get(pod.workloadKey) ?? [];
    stops.set(pod.workloadKey, [...found, { pod, why: record.stopReason }]);
  }
  for (const [key, stopped] of stops) {
    const wrong = wrongStopsOf(key, stopped, state);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongStopsOf(
  key: string,
  stopped: readonly { readonly pod: PodEntry; readonly why: string }[],
  state: ClusterView,
): string | undefined {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const resource = state.resource(resourceKey(namespace, kind, name));
  if (resource?.workload === undefined || resource.record.deleting || kind !== "container_service")
    return undefined;
  const limits = rollingLimitsOf(resource.workload);
  if (limits === undefined) return undefined;
  const going = new Set(stopped.map(({ pod }) => pod));
  const taken = new Set(stopped.filter(({ why }) => FORCED.test(why)).map(({ pod }) => pod));
  const available = state.podsOfWorkload(key).filter((pod) => isAvailable(pod, state) && !taken.has(pod));
  const left = available.filter((pod) => !going.has(pod));
  if (left.length === available.length) return undefined;
  const least = Math.min(available.length, limits.minAvailable);
  if (left.length >= least) return undefined;
  const whys = [...new Set(stopped.map(({ why }) => why))].join(", ");
  return `${key}: stopping ${going.size} pods (${whys}) leaves ${left.length} of ${available.length} available, at least ${least} must stay`;
}

function isAvailable({ record, status }: PodEntry, state: ClusterView): boolean {
  if (record.stoppingSince !== undefined || status?.ready !== true) return false;
  return state.node(record.node)?.health.ready === true;
}
