import type { Planning } from "./planning.ts";

// After this many consecutive nodes that can't be emptied, fuller ones are unlikely to be. Each attempt costs a scan of
// the fleet per pod.
const FAILURES_MOST = 32;

/** Moves the pods of the emptiest nodes to nodes that stay in use. Returns the names of the emptied nodes. */
export function emptyNodes(planning: Planning): string[] {
  const { state, trialMoves, movesMost } = planning;
  const emptied = new Set<number>();
  const received = new Set<number>();
  let failures = 0;
  for (const node of sources(planning)) {
    state.forgetIfFull();
    const before = trialMoves.moves.length;
    const pods = [...state.pods.on(node)];
    if (received.has(node) || before + pods.length > movesMost) continue;
    const targets = moveAll(planning, node, pods, emptied);
    if (targets === undefined) {
      trialMoves.undoTo(before);
      if (++failures > FAILURES_MOST) break;
      continue;
    }
    failures = 0;
    emptied.add(node);
    for (const target of targets) received.add(target);
  }
  return [...emptied].map((node) => state.nodes.name(node));
}

/** Returns nodes whose pods can all be moved: fewest pods first, then least used cpu, then by name. */
function sources({ state, isMovable }: Planning): number[] {
  const { nodes, pods } = state;
  const counted = [...nodes.indexOf.values()].map((node) => {
    const own = [...pods.on(node)];
    const used = 1 - (nodes.cpu.free[node] ?? 0) * (nodes.cpu.perUnit[node] ?? 0);
    return { node, count: own.length, used, whole: own.length > 0 && own.every(isMovable) };
  });
  return counted
    .filter(({ whole }) => whole)
    .sort((a, b) => a.count - b.count || a.used - b.used || (nodes.precedes(a.node, b.node) ? -1 : 1))
    .map(({ node }) => node);
}

/** Returns the nodes to which the pods were moved, or undefined if a pod does not fit on nodes in use. */
function moveAll(
  planning: Planning,
  from: number,
  pods: readonly number[],
  emptied: ReadonlySet<number>,
): number[] | undefined {
  const { state, trialMoves } = planning;
  const targets: number[] = [];
  const demand = (pod: number) => state.pods.classOf(pod).demand;
  const bySize = [...pods].sort(
    (a, b) => demand(b).cpu - demand(a).cpu || demand(b).memory - demand(a).memory,
  );
  for (const pod of bySize) {
    trialMoves.lift(pod);
    const to = bestAmong(
      planning,
      pod,
      (node) => node !== from && !emptied.has(node) && (state.nodes.firstPod[node] ?? -1) >= 0,
    );
    if (to < 0) {
      trialMoves.drop(pod);
      return undefined;
    }
    trialMoves.put(pod, to);
    targets.push(to);
  }
  return targets;
}

function bestAmong({ state, placer }: Planning, pod: number, allowed: (node: number) => boolean): number {
  const { nodes, totals, length } = placer.feasible(state.pods.classOf(pod));
  let chosen = -1;
  let most = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < length; i++) {
    const node = nodes[i] ?? 0;
    const total = totals[i] ?? 0;
    if (!allowed(node) || total < most) continue;
    if (total === most && !state.nodes.precedes(node, chosen)) continue;
    chosen = node;
    most = total;
  }
  return chosen;
}
