import type { Supposition, WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import type { Control } from "../control/control.ts";
import { disruptionOf } from "../control/eviction/disruption.ts";
import { MassLoss } from "../control/eviction/mass-loss.ts";
import type { PlanOptions } from "../plan/plan-apply.ts";
import { Sandbox } from "../plan/sandbox.ts";
import type { PodEntry } from "../state/entries.ts";
import { resourceOutcomes, totalUse } from "./node-use.ts";
import { isSafe, placementOf, workloadOutcomes } from "./outcome.ts";
import { ReadyCounts } from "./ready-counts.ts";
import { fleetHealthWith, lostNodes, suppose } from "./suppose.ts";

/**
 * The simulated time after the change. All tolerations and deadlines of default length end within
 * it.
 */
export const HORIZON_MS = 30 * 60_000;
/**
 * The most rounds in which pods report changes. A job of thousands of pods would need thousands.
 */
const MAX_ROUNDS = 200;
/** The most waits for events that depend only on time. */
const MAX_WAITS = 5_000;

/** Returns the effect of validated suppositions. Everything happens on a copy. */
export async function tryOut(
  suppositions: readonly Supposition[],
  options: PlanOptions,
): Promise<WhatIfResponse> {
  const sandbox = await Sandbox.open(options);
  const { state } = sandbox;
  const lost = lostNodes(suppositions, state);
  const ready = new ReadyCounts({ state, lost });
  try {
    const [before, useBefore] = [placementOf(state), totalUse(state)];
    await suppose(suppositions, { sandbox, lost, apply: options.apply });
    const health = fleetHealthWith(lost, state);
    const massLoss = new MassLoss({ recoveryMs: 0 });
    massLoss.update(health, sandbox.clock.monotonicMs());
    const control = sandbox.start(massLoss);
    const isOver = await runUntilIdle(sandbox);
    const after = placementOf(state, lost);
    const whyUnplaced = (pod: PodEntry): string => whyWithoutNode(pod, control);
    const workloads = workloadOutcomes({ before, after, ready, state, whyUnplaced });
    const kept = lost.size > 0 && disruptionOf(health) !== "none";
    return {
      workloads,
      resources: resourceOutcomes(useBefore, totalUse(state)),
      notes: [...(kept ? [keptNote(health)] : []), ...(isOver ? [] : [CUT_NOTE])],
      losses: [],
      nodesTried: 0,
      estimated: [],
      safe: isSafe(workloads) && !kept,
    };
  } finally {
    ready.close();
    await sandbox.close();
  }
}

/**
 * Lets the copy's controllers run until there is no work before the horizon. Returns whether they
 * became idle.
 */
export async function runUntilIdle(sandbox: Sandbox): Promise<boolean> {
  const untilMs = sandbox.clock.nowMs() + HORIZON_MS;
  let reported = -1;
  for (let rounds = 0, waits = 0; rounds < MAX_ROUNDS && waits < MAX_WAITS; ) {
    await sandbox.settle();
    if (sandbox.state.revision !== reported) {
      const said = await sandbox.report();
      reported = sandbox.state.revision;
      if (said) rounds++;
      if (said) continue;
    }
    if (!sandbox.clock.next(untilMs)) return true;
    waits++;
  }
  return false;
}

function whyWithoutNode({ record }: PodEntry, { unschedulable }: Control): string {
  return unschedulable.get(record.uid)?.summary ?? "it waits for something other than a node";
}

const CUT_NOTE =
  "the copy was still at work when the trial ended: jobs with many pods take many rounds; the figures are of that moment";

function keptNote({ nodes, lost }: { readonly nodes: number; readonly lost: number }): string {
  return `${lost} of ${nodes} nodes would be lost at once: the coordinator treats that as a failure of its own connection, replaces no pod, and keeps endpoints as they are until more nodes are back`;
}
