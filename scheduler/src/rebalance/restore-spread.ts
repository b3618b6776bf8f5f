import type { LiveRules } from "../place/live-rules.ts";
import { excessOf } from "../place/pack-score.ts";
import type { Planning } from "./planning.ts";

/** Moves replicas from domains with too many to domains with fewer, while each move improves the spread. */
export function restoreSpread(planning: Planning): void {
  const { state, placer, trialMoves, movesMost, isMovable } = planning;
  const pods = [...state.pods.indexOf.values()].sort(
    (a, b) => (state.pods.start[b] ?? 0) - (state.pods.start[a] ?? 0),
  );
  for (const pod of pods) {
    if (trialMoves.moves.length >= movesMost) return;
    state.forgetIfFull();
    const live = placer.live(state.pods.classOf(pod));
    if (!isSpread(live) || !isMovable(pod)) continue;
    const from = state.pods.node[pod] ?? 0;
    trialMoves.lift(pod);
    const excess = excessOf(live, from);
    const to = excess > 0 ? leastExcess(planning, live, excess) : -1;
    if (to < 0) trialMoves.drop(pod);
    else trialMoves.put(pod, to);
  }
}

function isSpread({ hard, soft, siblings }: LiveRules): boolean {
  return hard.length > 0 || soft.length > 0 || siblings !== undefined;
}

/**
 * Returns the feasible node with the least excess, if that is less than `most`, and the one with the best score among
 * equals.
 */
function leastExcess({ state, placer }: Planning, live: LiveRules, most: number): number {
  const { nodes, totals, length } = placer.feasible(live.podClass);
  let chosen = -1;
  let least = most;
  let total = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < length; i++) {
    const node = nodes[i] ?? 0;
    const excess = excessOf(live, node);
    if (excess > least || (chosen < 0 && excess === least)) continue;
    const own = totals[i] ?? 0;
    const better = excess < least || own > total || (own === total && state.nodes.precedes(node, chosen));
    if (!better) continue;
    chosen = node;
    least = excess;
    total = own;
  }
  return chosen;
}
