import { MassLoss } from "../control/eviction/mass-loss.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";

export interface StoredHealthOptions {
  readonly state: ClusterView;
  readonly monotonicMs: () => number;
  readonly recoveryMs: number;
  /** Schedules work after the current task. */
  readonly defer: (run: () => void) => void;
}

/**
 * Sets the health of nodes as stored by the leader. Only the leader receives heartbeats, and it
 * stores which nodes it has lost. Returns a function that ends this.
 */
export function showStoredHealth({ state, monotonicMs, recoveryMs, defer }: StoredHealthOptions): () => void {
  const massLoss = new MassLoss({ recoveryMs });
  let isDue = false;
  let isOver = false;
  const show = (): void => {
    isDue = false;
    if (isOver) return;
    const nodes = state.nodes();
    massLoss.update({ nodes: nodes.length, lost: nodes.filter(isLost).length }, monotonicMs());
    const keeps = massLoss.isActive(monotonicMs());
    for (const node of nodes) showOne(state, node, keeps);
  };
  const unsubscribe = state.subscribe((changes) => {
    if (isDue || !changes.some(concernsLoss)) return;
    isDue = true;
    // Other subscribers must receive these changes first.
    defer(show);
  });
  show();
  return () => {
    isOver = true;
    unsubscribe();
  };
}

type Changes = Parameters<Parameters<ClusterView["subscribe"]>[0]>[0];

function concernsLoss(change: Changes[number]): boolean {
  if (change.type !== "node" || change.after === undefined) return change.type === "node";
  return change.before === undefined || isLost(change.before) !== isLost(change.after);
}

function showOne(state: ClusterView, node: NodeEntry, keepsEndpoints: boolean): void {
  const ready = !isLost(node);
  const kept = !ready && keepsEndpoints;
  const { health } = node;
  if (health.ready === ready && (health.kept ?? false) === kept && health.sinceMs !== undefined) return;
  const sinceMs = toEpochMs(node.record.unreachableSince) ?? 0;
  const message = ready ? "" : "the leader has lost it";
  state.setNodeHealth(
    node.name,
    { ready, message, lastSeenMs: undefined, sinceMs, ...(kept && { kept }) },
    true,
  );
}

function isLost({ record }: NodeEntry): boolean {
  return record.unreachableSince !== undefined;
}
