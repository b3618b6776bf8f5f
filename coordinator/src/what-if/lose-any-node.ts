import type { NodeLoss, WhatIfResponse, WorkloadWaiting } from "@forage/proto/forage/operator/v1/operator";
import { type Fleet, type Profile, podKey } from "@forage/scheduler";
import { type DefaultTolerations, evictionOf } from "../control/eviction/eviction-of.ts";
import { endOf } from "../control/job/pod-state.ts";
import { claimTiesOf } from "../control/placement/claims.ts";
import { byImportance } from "../control/placement/order.ts";
import { podSpecOf } from "../model/pod-spec.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import { UNREACHABLE_TAINT } from "../state/node-taints.ts";
import { openFleetCopy } from "./fleet-copy.ts";

export interface LoseAnyNodeOptions {
  readonly state: ClusterView;
  readonly profile: Profile;
  readonly tolerations?: DefaultTolerations | undefined;
  readonly nowMs: number;
  /** Lets others have the process. */
  readonly turn: () => Promise<void>;
}

/** Losses in the response. */
const MAX_LOSSES = 100;
const NOTE =
  "each node was tried out alone, by the scheduler and without preemption; `forage whatif --lose NODE` tries one out in full";

/** Tries out the loss of each node that is ready, one after the other. */
export async function loseAnyNode(options: LoseAnyNodeOptions): Promise<WhatIfResponse> {
  const { state, profile, turn } = options;
  const copy = openFleetCopy(state, profile);
  const losses: NodeLoss[] = [];
  let nodesTried = 0;
  try {
    for (const { name } of state.nodes()) {
      const node = state.node(name);
      if (node === undefined || !node.health.ready) continue;
      nodesTried++;
      const loss = copy.view.without(node, () => lossOf(name, copy.fleet, options));
      if (loss.waiting.length > 0) losses.push(loss);
      await turn();
    }
  } finally {
    copy.close();
  }
  const waiting = (loss: NodeLoss): number => loss.waiting.reduce((sum, { pods }) => sum + pods, 0);
  losses.sort((a, b) => waiting(b) - waiting(a) || (a.node < b.node ? -1 : 1));
  const notes = losses.length > MAX_LOSSES ? [NOTE, `the worst ${MAX_LOSSES} of ${losses.length}`] : [NOTE];
  return {
    ...{ workloads: [], resources: [], notes, nodesTried },
    losses: losses.slice(0, MAX_LOSSES),
    safe: losses.length === 0,
  };
}

/** The node is not in the fleet. Places its pods on the others, and takes them off again. */
function lossOf(name: string, fleet: Fleet, { state, tolerations, nowMs }: LoseAnyNodeOptions): NodeLoss {
  const taint = { key: UNREACHABLE_TAINT, value: "", effect: "NoExecute", addedAt: toTimestamp(nowMs) };
  const replaced = state
    .podsOnNode(name)
    .filter((pod) => isReplaced(pod) && evictionOf(pod.record, [taint], tolerations) !== undefined)
    .sort(byImportance);
  const placed: PodEntry[] = [];
  const waiting = new Map<string, WorkloadWaiting>();
  for (const pod of replaced) {
    const spec = podSpecOf(pod.record, claimTiesOf(pod, state).nodes);
    if (fleet.schedule(spec) !== undefined) {
      placed.push(pod);
      continue;
    }
    const known = waiting.get(pod.workloadKey);
    const why = known?.why ?? fleet.explain(spec).summary;
    const pods = (known?.pods ?? 0) + 1;
    waiting.set(pod.workloadKey, { ...splitWorkloadKey(pod.workloadKey), pods, why });
  }
  for (const { record } of placed) fleet.unbind(podKey(record));
  return { node: name, pods: replaced.length, waiting: [...waiting.values()] };
}

function isReplaced(pod: PodEntry): boolean {
  if (pod.record.stoppingSince !== undefined) return false;
  return pod.record.job === undefined || endOf(pod) === undefined;
}
