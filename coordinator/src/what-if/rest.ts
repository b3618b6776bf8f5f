import { MassLoss } from "../control/eviction/mass-loss.ts";
import { workloadKey } from "../model/workload.ts";
import type { PlanOptions } from "../plan/plan-apply.ts";
import { Sandbox } from "../plan/sandbox.ts";
import type { Change } from "../state/entries.ts";
import { fleetHealthWith } from "./suppose.ts";
import { letRun } from "./try-out.ts";

/** The work that the controllers have left before the horizon if nothing changes. */
export interface Rest {
  /** Whether all pods and nodes stay as they are. */
  readonly isAtRest: boolean;
  /** Keys of workloads whose rollout goes on. */
  readonly moving: ReadonlySet<string>;
}

/** Runs the controllers on a copy of the fleet in which nothing changes. */
export async function restOf(options: PlanOptions): Promise<Rest> {
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
    const isOver = await letRun(sandbox);
    return { isAtRest: isOver && isAtRest, moving };
  } finally {
    unsubscribe();
    await sandbox.close();
  }
}

/** The key of the workload of which only the progress of its rollout is recorded; undefined: something else changes. */
function rolloutChangedBy(change: Change): string | undefined {
  if (change.kind !== "workload-status" && change.kind !== "revision" && change.kind !== "resource")
    return undefined;
  const record = (change.after ?? change.before)?.record;
  return record && workloadKey(record.namespace, record.kind, record.name);
}
