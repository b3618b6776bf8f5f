import type { Placer } from "../place/placer.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { RebalanceOptions, RebalancePlan } from "../types.ts";
import { emptyNodes } from "./empty-nodes.ts";
import type { Planning } from "./planning.ts";
import { restoreSpread } from "./restore-spread.ts";
import { TrialMoves } from "./trial-moves.ts";

// The limit of moves in a plan, more than people would read.
const MOVES_MOST = 100;

/** Plans moves. Leaves the state unchanged. */
export function defragment(state: FleetState, placer: Placer, options: RebalanceOptions): RebalancePlan {
  const { goal, maxMoves = MOVES_MOST, movable } = options;
  const trialMoves = new TrialMoves(state);
  const isMovable = (pod: number) =>
    state.pods.terminating[pod] !== 1 && (movable === undefined || movable(state.pods.key(pod)));
  const planning: Planning = { state, placer, trialMoves, movesMost: maxMoves, isMovable };
  try {
    const emptied = goal === "empty-nodes" ? emptyNodes(planning) : [];
    if (goal === "restore-spread") restoreSpread(planning);
    const { moves } = trialMoves;
    return { moves, emptied, summary: summaryOf(moves.length, emptied.length) };
  } finally {
    trialMoves.undoTo(0);
  }
}

function summaryOf(moves: number, emptied: number): string {
  if (moves === 0) return "nothing to gain";
  const moved = `${moves} ${moves === 1 ? "move" : "moves"}`;
  return emptied === 0
    ? `${moved} to spread replicas evenly`
    : `${moved} to empty ${emptied} ${emptied === 1 ? "node" : "nodes"}`;
}
