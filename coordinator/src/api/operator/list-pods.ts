import type { ListPodsRequest, ListPodsResponse } from "@forage/proto/forage/operator/v1/operator";
import type { UnschedulablePods } from "../../control/placement/unschedulable-pods.ts";
import { hasLabels } from "../../model/labels.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import { keptPods } from "../../state/kept-pods.ts";
import type { Clock } from "../../time/clock.ts";
import { type PodUsageSource, podUsage } from "./usage-view.ts";
import { keptPodView, podView } from "./views.ts";

interface ListPodsOptions {
  readonly state: ClusterView;
  readonly clock: Pick<Clock, "nowMs">;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  readonly metrics: { readonly usage: PodUsageSource };
}

/** Returns the pods that match, and separately the failed pods that are kept. */
export function listPods(
  request: ListPodsRequest,
  { state, clock, unschedulable, metrics }: ListPodsOptions,
): ListPodsResponse {
  const namespace = request.namespace || undefined;
  // A template can be as large as a manifest, so a list of all pods doesn't contain them.
  const templateOf = ({ record }: PodEntry) => (request.name === "" ? undefined : record.template);
  const pods = state
    .pods(namespace)
    .filter((pod) => matches(pod, request))
    .map((pod) => ({
      ...podView(state, pod, unschedulable.get(pod.record.uid)),
      template: templateOf(pod),
      usage: podUsage(state, pod, metrics.usage),
    }));
  const kept = keptPods(state, namespace, clock.nowMs())
    .filter(({ entry }) => matches(entry, request))
    .map((pod) => ({ ...keptPodView(state, pod), template: templateOf(pod.entry) }));
  return { pods, kept };
}

function matches({ record }: PodEntry, { labels, workload, node, name }: ListPodsRequest): boolean {
  return (
    hasLabels(record.labels, labels) &&
    (workload === "" || record.workloadName === workload) &&
    (node === "" || record.node === node) &&
    (name === "" || record.name === name || record.uid.startsWith(name))
  );
}
