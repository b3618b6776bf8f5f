import { MassLoss } from "../control/eviction/mass-loss.ts";
import { workloadKey } from "../model/workload.ts";
import type { PlanOptions } from "../plan/plan-apply.ts";
import { Sandbox } from "../plan/sandbox.ts";
import type { Change } from "../state/entries.ts";
import { fleetHealthWith } from "./suppose.ts";
import { runUntilIdle } from "./try-out.ts";

/** The work of the controllers before the horizon if nothing else changes. */
export interface RemainingWork {
  /** Whether all pods and nodes stay unchanged. */
  readonly isAtRest: boolean;
  /** The keys of workloads with a rollout in progress. */
  readonly moving: ReadonlySet<string>;
}

/** Runs the controllers on a copy of the fleet without any change. */
export async function restOf(options: PlanOptions): Promise<RemainingWork> {
  const sandbox = await Sandbox.open(options);
  const moving = new Set<string>();
  let isAtRest = true;
  const unsubscribe = sandbox.state.subscribe((changes) => {
    for (const change of changes) {
      const workload = rolloutChangedBy(change);
      if (workload !== undefined) moving.add(workload);
      else isAtRest = false;
    }
  });
  try {
    const massLoss = new MassLoss({ recoveryMs: 0 });
    massLoss.update(fleetHealthWith(new Set(), sandbox.state), sandbox.clock.monotonicMs());
    sandbox.start(massLoss);
    const isOver = await runUntilIdle(sandbox);
    return { isAtRest: isOver && isAtRest, moving };
  } finally {
    unsubscribe();
    await sandbox.close();
  }
}

/**
 * Returns the key of the workload if a change only records the progress of its rollout; undefined
 * for other changes.
 */
function rolloutChangedBy(change: Change): string | undefined {
  if (change.type !== "workload-status" && change.type !== "revision" && change.type !== "resource")
    return undefined;
  const record = (change.after ?? change.before)?.record;
  return record && workloadKey(record.namespace, record.kind, record.name);
}
