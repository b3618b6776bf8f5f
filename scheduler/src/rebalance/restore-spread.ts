import type { LiveRules } from "../place/live-rules.ts";
import { excessOf } from "../place/pack-score.ts";
import type { Planning } from "./planning.ts";

/** Moves replicas from domains with too many to domains with fewer, as long as each move makes the spread better. */
export function restoreSpread(planning: Planning): void {
  const { state, placer, rehearsal, movesMost, isMovable } = planning;
  const pods = [...state.pods.indexOf.values()].sort(
    (a, b) => (state.pods.start[b] ?? 0) - (state.pods.start[a] ?? 0),
  );
  for (const pod of pods) {
    if (rehearsal.moves.length >= movesMost) return;
    state.forgetIfFull();
    const live = placer.live(state.pods.classOf(pod));
    if (!isSpread(live) || !isMovable(pod)) continue;
    const from = state.pods.node[pod] ?? 0;
    rehearsal.lift(pod);
    const excess = excessOf(live, from);
    const to = excess > 0 ? leastExcess(planning, live, excess) : -1;
    if (to < 0) rehearsal.drop(pod);
    else rehearsal.put(pod, to);
  }
}

function isSpread({ hard, soft, siblings }: LiveRules): boolean {
  return hard.length > 0 || soft.length > 0 || siblings !== undefined;
}

/** The feasible node of least excess, if that is less than `most`; among equals the one that scores best. */
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
