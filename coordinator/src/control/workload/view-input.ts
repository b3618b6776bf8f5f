import type { TimeReading } from "../../acting-time/acting-time.ts";
import { hasDependencies } from "../../model/depends-on.ts";
import { isOfAttempt } from "../../model/kept-pod.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { type UnschedulablePods, waitingSince } from "../placement/unschedulable-pods.ts";
import type { Prefetcher } from "./prefetch.ts";
import type { ProgressLimits } from "./progress-limits.ts";
import type { WorkloadInput } from "./workload-input.ts";

export interface ViewOptions {
  readonly state: ClusterView;
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  /** The image prefetcher. Undefined: nodes have every image. */
  readonly prefetcher?: Pick<Prefetcher, "imagesOn"> | undefined;
  readonly limits: ProgressLimits;
  readonly pickVictims: (pods: readonly PodEntry[], count: number) => readonly PodEntry[];
}

/**
 * Returns the input for planning a workload with the key `namespace/kind/name`. To simulate an apply, replace `resource` in
 * the result with an entry that has the proposed record, a generation that is higher by one, and its `workloadOf`.
 */
export function workloadInput(key: string, moment: TimeReading, options: ViewOptions): WorkloadInput {
  const { state, unschedulable, prefetcher, limits, pickVictims } = options;
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const resource: ResourceEntry | undefined = state.resource(resourceKey(namespace, kind, name));
  const stored = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record;
  const status = stored?.status?.$case === "containerService" ? stored.status.value : undefined;
  const startedAt = status?.attempt?.startedAt;
  return {
    resource,
    held: resource !== undefined && hasDependencies(resource.record, stored),
    pods: state.podsOfWorkload(key),
    status,
    keptPods: state.keptPods.group(`workload:${key}`).filter((it) => isOfAttempt(it.record, startedAt))
      .length,
    revisions: state.revisions.group(`workload:${key}`).map(({ record }) => record),
    nodeExists: (node) => state.node(node) !== undefined,
    nodeReady: (node) => state.node(node)?.health.ready ?? false,
    unschedulable: (uid) => waitingSince(unschedulable.get(uid), moment),
    imagesOn: ({ templateHash }, node) =>
      prefetcher?.imagesOn(key, templateHash, node) ?? { type: "present" },
    ...moment,
    limits,
    pickVictims,
  };
}
