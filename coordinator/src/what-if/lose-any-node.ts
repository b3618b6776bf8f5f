import type { NodeLoss, WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Fleet, podKey } from "@forage/scheduler";
import { pendingEviction } from "../control/eviction/pending-eviction.ts";
import { usesNothing } from "../control/job/pod-state.ts";
import { claimTiesOf } from "../control/placement/claims.ts";
import { byImportance } from "../control/placement/order.ts";
import { podSpecOf } from "../model/pod-spec.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { PlanOptions } from "../plan/plan-apply.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";
import { equalNodes } from "./equal-nodes.ts";
import { type FleetCopy, openFleetCopy } from "./fleet-copy.ts";
import { FreeRoom } from "./free-room.ts";
import { LossProofs, taintsOfLost } from "./loss-proofs.ts";
import { compareHarm, type LossVerdict, verdictOf } from "./loss-verdict.ts";
import { PodShapes } from "./pod-shapes.ts";
import { restOf } from "./rest.ts";
import { ServiceCounts } from "./service-counts.ts";
import { tryOut } from "./try-out.ts";

/** The most losses in the response. */
const MAX_LOSSES = 100;
/**
 * The most nodes and pods that the dry runs of one request copy, which takes about 1.5 s of CPU
 * time. Each dry run copies the fleet.
 */
const MAX_COPIED = 44_000;
/** The most losses that are described in full, the worst ones first. */
const MAX_DESCRIBED = 10;

export interface LoseAnyNodeOptions {
  /**
   * The most losses that are simulated with all controllers. Default: as many as take a second or
   * two, but at least one.
   */
  readonly maxTrials?: number;
}

/**
 * Evaluates the loss of each ready node separately. Proves the result if possible, simulates other
 * losses with all controllers up to a limit, beginning with the worst one, and estimates the rest
 * by the scheduler alone.
 */
export async function loseAnyNode(
  plan: PlanOptions,
  { maxTrials = trialsFor(plan) }: LoseAnyNodeOptions = {},
): Promise<WhatIfResponse> {
  const { state, turn } = plan;
  const copy = openFleetCopy(state, plan.control.profile);
  try {
    const trial = await openTrial(plan, copy);
    const groups = equalNodes(state, trial.shapes);
    const verdicts = new Map<NodeEntry, LossVerdict>();
    for (const [node] of groups) {
      if (node !== undefined) verdicts.set(node, trial.proofs.proofOf(node) ?? estimateOf(node, trial));
      await turn();
    }
    for (const node of chooseTrials(verdicts, maxTrials)) {
      const supposition = { $case: "loseNode", value: node.name } as const;
      verdicts.set(node, verdictOf(node.name, await tryOut([{ supposition }], plan)));
    }
    const all = groups.flatMap((group) => verdictsOfGroup(group, verdicts));
    return responseOf(all, trial);
  } finally {
    copy.close();
  }
}

function trialsFor({ state }: PlanOptions): number {
  return Math.max(1, Math.floor(MAX_COPIED / (1 + state.nodes().length + state.pods().length)));
}

interface Trial {
  readonly plan: PlanOptions;
  readonly copy: FleetCopy;
  readonly shapes: PodShapes;
  readonly counts: ServiceCounts;
  readonly proofs: LossProofs;
}

async function openTrial(plan: PlanOptions, copy: FleetCopy): Promise<Trial> {
  const { state, turn } = plan;
  const shapes = new PodShapes();
  const counts = new ServiceCounts(state);
  await turn();
  const room = new FreeRoom(state, shapes);
  await turn();
  const options = { plan, fleet: copy.fleet, shapes, room, counts, rest: await restOf(plan) };
  return { plan, copy, shapes, counts, proofs: new LossProofs(options) };
}

/**
 * Returns the nodes whose loss is simulated: the worst one, then those without a proof, then the
 * others by harm, for their description.
 */
function chooseTrials(verdicts: ReadonlyMap<NodeEntry, LossVerdict>, most: number): NodeEntry[] {
  const ranked = [...verdicts].sort(([, a], [, b]) => compareHarm(a, b));
  const [worst] = ranked;
  const unproved = ranked.filter(([, { isEstimated }]) => isEstimated);
  const harmful = ranked.filter(([, { isSafe }]) => !isSafe).slice(0, MAX_DESCRIBED);
  const first = worst !== undefined && !worst[1].isSafe ? [worst] : [];
  return [...new Set([...first, ...unproved, ...harmful].map(([node]) => node))].slice(0, most);
}

/**
 * Returns the verdicts for all nodes of a group. They are equal, except for the parts that name
 * other nodes.
 */
function verdictsOfGroup(
  group: readonly NodeEntry[],
  verdicts: ReadonlyMap<NodeEntry, LossVerdict>,
): LossVerdict[] {
  return group.flatMap((node, index) => {
    const verdict = group[0] && verdicts.get(group[0]);
    if (verdict === undefined) return [];
    const { outcome: _, ...rest } = verdict;
    return [index === 0 ? verdict : { ...rest, node: node.name }];
  });
}

function responseOf(all: readonly LossVerdict[], trial: Trial): WhatIfResponse {
  const harmful = all.filter(({ isSafe }) => !isSafe).sort(compareHarm);
  const more = harmful.length - MAX_LOSSES;
  const losses = harmful
    .slice(0, MAX_LOSSES)
    .map((verdict, index) => lossOf(verdict, index < MAX_DESCRIBED, trial));
  return {
    ...{ workloads: [], resources: [], losses },
    notes: more > 0 ? [`the worst ${MAX_LOSSES} of ${harmful.length} losses`] : [],
    nodesTried: all.length,
    safe: harmful.length === 0,
    estimated: all.filter(({ isEstimated }) => isEstimated).map(({ node }) => node),
  };
}

function lossOf(verdict: LossVerdict, isDescribed: boolean, trial: Trial): NodeLoss {
  const { node, short, isEstimated, outcome } = verdict;
  const described = isDescribed ? outcome : undefined;
  const waiting = [...verdict.waiting].map(([key, { pods, why }]) => {
    return { ...splitWorkloadKey(key), pods, why: why ?? whyWaiting(key, node, trial) };
  });
  return {
    ...{ node, waiting, short: [...short], estimated: isEstimated },
    pods: replacedPods(node, trial.plan).length,
    workloads: described?.workloads ?? [],
    resources: described?.resources ?? [],
    notes: outcome?.notes ?? [],
  };
}

/**
 * Returns the scheduler's reason why one more pod of the workload finds no node without this one.
 */
function whyWaiting(workload: string, lost: string, { plan, copy }: Trial): string {
  const node = plan.state.node(lost);
  const pod = plan.state.podsOfWorkload(workload).find(({ record }) => record.node === lost);
  if (node === undefined || pod === undefined) return "";
  const ties = claimTiesOf(pod, plan.state);
  const spec = { ...podSpecOf(pod.record, ties.nodes), name: replacementName(pod) };
  return copy.view.whileLost(node, plan.nowMs, () => copy.fleet.explain(spec).summary);
}

/**
 * Estimates a loss: places the replacements by the scheduler alone, by priority and without
 * preemption.
 */
function estimateOf(node: NodeEntry, { plan, copy, counts }: Trial): LossVerdict {
  const short = counts.shortWithout(node.name);
  const waiting = copy.view.whileLost(node, plan.nowMs, () => placeReplacements(node.name, copy.fleet, plan));
  const isSafe = waiting.size === 0 && short.length === 0;
  return { node: node.name, waiting, short, isSafe, isEstimated: true };
}

function placeReplacements(lost: string, fleet: Fleet, plan: PlanOptions): LossVerdict["waiting"] {
  const placed: ReturnType<typeof podKey>[] = [];
  const waiting = new Map<string, { pods: number; why: string }>();
  for (const pod of replacedPods(lost, plan).sort(byImportance)) {
    const spec = {
      ...podSpecOf(pod.record, claimTiesOf(pod, plan.state).nodes),
      name: replacementName(pod),
    };
    if (fleet.schedule(spec) !== undefined) {
      placed.push(podKey(spec));
      continue;
    }
    const known = waiting.get(pod.workloadKey);
    const why = known?.why ?? fleet.explain(spec).summary;
    waiting.set(pod.workloadKey, { pods: (known?.pods ?? 0) + 1, why });
  }
  for (const key of placed) fleet.unbind(key);
  return waiting;
}

/** Returns a name that no real pod has, because names of pods are DNS labels. */
function replacementName({ record }: PodEntry): string {
  return `${record.name}_replacement`;
}

/** Returns the pods that would be replaced if the node were lost. */
function replacedPods(name: string, { state, nowMs, control }: PlanOptions): PodEntry[] {
  const node = state.node(name);
  if (node === undefined) return [];
  const taints = taintsOfLost(node, nowMs);
  return state
    .podsOnNode(name)
    .filter(
      (pod) =>
        !usesNothing(pod) && pendingEviction(pod, node, taints, nowMs, control.tolerations) !== undefined,
    );
}
