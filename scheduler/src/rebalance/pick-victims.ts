import { workloadMatcher } from "../match/pod-matcher.ts";
import type { FleetState } from "../state/fleet-state.ts";
import { NODE_TOPOLOGY, type Topology } from "../state/topology.ts";

const ZONE = "zone";

/**
 * Selects pods of the workload to stop, one after another from the domain with the most replicas, and the latest
 * started among equals.
 */
export function pickVictims(state: FleetState, workload: string, count: number, revision?: string): number[] {
  const left = podsOf(state, workload, revision);
  const topologies = topologiesOf(state, left);
  const counts = topologies.map(() => new Map<number, number>());
  const domainOf = (topology: Topology, pod: number) => topology.domain[state.pods.node[pod] ?? 0] ?? -1;
  for (const pod of left)
    for (const [i, topology] of topologies.entries()) shift(counts[i], domainOf(topology, pod), 1);
  const crowd = (pod: number) =>
    topologies.map((topology, i) => counts[i]?.get(domainOf(topology, pod)) ?? 0);
  const victims: number[] = [];
  while (victims.length < count && left.length > 0) {
    let worst = 0;
    for (let at = 1; at < left.length; at++) {
      const [pod, most] = [left[at] ?? 0, left[worst] ?? 0];
      const order =
        compare(crowd(pod), crowd(most)) || (state.pods.start[pod] ?? 0) - (state.pods.start[most] ?? 0);
      if (order > 0) worst = at;
    }
    const [victim = 0] = left.splice(worst, 1);
    for (const [i, topology] of topologies.entries()) shift(counts[i], domainOf(topology, victim), -1);
    victims.push(victim);
  }
  return victims;
}

/** Returns the workload's pods that are not stopping. */
export function podsOf(state: FleetState, workload: string, revision?: string): number[] {
  const pods: number[] = [];
  for (const identity of state.identities.matching(workloadMatcher(workload, revision))) {
    for (let pod = identity.firstPod; pod >= 0; pod = state.pods.nextOfIdentity[pod] ?? -1) {
      if (state.pods.terminating[pod] !== 1) pods.push(pod);
    }
  }
  return pods;
}

/** Returns the topologies to compare: the workload's own constraints first, then zones, then nodes. */
function topologiesOf(state: FleetState, pods: readonly number[]): Topology[] {
  const keys = new Set<string>();
  for (const pod of pods) {
    const { hard, soft } = state.pods.classOf(pod).rules;
    for (const rule of [...hard, ...soft]) keys.add(rule.topologyKey);
  }
  return [...keys, ZONE, NODE_TOPOLOGY].map((key) => state.facts.topology(key));
}

function shift(counts: Map<number, number> | undefined, domain: number, delta: number): void {
  counts?.set(domain, (counts.get(domain) ?? 0) + delta);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const difference = value - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
