import type { NodeSpec, PodSpec } from "../../src/types.ts";
import { type Cluster, counts, countsNothing, included } from "./filter.ts";
import * as match from "./match.ts";
import { capacity, needs, used } from "./resources.ts";

type Scores = Map<string, number>;
export type KubeProfile = "kube-most" | "kube-least";

/**
 * Returns kube-scheduler's weighted total for each feasible node, or undefined if it would fail the pod (a malformed
 * preference).
 */
export function totals(
  pod: PodSpec,
  feasible: readonly NodeSpec[],
  cluster: Cluster,
  profile: KubeProfile,
): Scores | undefined {
  const preferred = pod.nodeAffinity?.preferred ?? [];
  if (preferred.some((p) => p.weight !== 0 && !match.termParses(p.preference))) return undefined;
  const weighted: [number, Scores][] = [
    [
      3,
      normalise(
        scoresOf(feasible, (n) => intolerable(pod, n)),
        true,
      ),
    ],
    [
      2,
      normalise(
        scoresOf(feasible, (n) => preference(pod, n)),
        false,
      ),
    ],
    [2, spread(pod, feasible, cluster)],
    [2, affinity(pod, feasible, cluster)],
    [1, scoresOf(feasible, (n) => fit(pod, n, cluster, profile))],
    [1, scoresOf(feasible, (n) => balanced(pod, n, cluster))],
    [1, scoresOf(feasible, (n) => images(pod, n, cluster))],
  ];
  return scoresOf(feasible, (n) => weighted.reduce((sum, [w, s]) => sum + w * (s.get(n.name) ?? 0), 0));
}

function scoresOf(nodes: readonly NodeSpec[], score: (node: NodeSpec) => number): Scores {
  return new Map(nodes.map((node) => [node.name, score(node)]));
}

function normalise(scores: Scores, reverse: boolean): Scores {
  const max = Math.max(0, ...scores.values());
  return new Map(
    [...scores].map(([name, score]) => {
      const share = max === 0 ? 0 : Math.trunc((100 * score) / max);
      return [name, reverse ? 100 - share : share];
    }),
  );
}

function intolerable(pod: PodSpec, node: NodeSpec): number {
  return (node.taints ?? []).filter((t) => t.effect === "PreferNoSchedule" && !match.tolerated(pod, t))
    .length;
}

function preference(pod: PodSpec, node: NodeSpec): number {
  return (pod.nodeAffinity?.preferred ?? [])
    .filter((p) => match.termMatches(p.preference, node))
    .reduce((sum, p) => sum + p.weight, 0);
}

function fit(pod: PodSpec, node: NodeSpec, cluster: Cluster, profile: KubeProfile): number {
  const here = cluster.bound.filter((b) => b.node.name === node.name).map((b) => b.pod);
  let sum = 0;
  let weights = 0;
  for (const resource of ["cpu", "memory"]) {
    const cap = capacity(node, resource);
    if (cap === 0) continue;
    const req = used(here, resource, true) + needs(pod, resource, true);
    if (profile === "kube-least") sum += req > cap ? 0 : Math.trunc(((cap - req) * 100) / cap);
    else sum += Math.trunc((Math.min(req, cap) * 100) / cap);
    weights++;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}

function balanced(pod: PodSpec, node: NodeSpec, cluster: Cluster): number {
  const resources = ["cpu", "memory"];
  if (resources.every((resource) => needs(pod, resource) === 0)) return 0;
  const here = cluster.bound.filter((b) => b.node.name === node.name).map((b) => b.pod);
  const fractions = resources
    .filter((resource) => capacity(node, resource) > 0)
    .map((resource) => Math.min(1, (used(here, resource) + needs(pod, resource)) / capacity(node, resource)));
  const deviation = fractions.length === 2 ? Math.abs(((fractions[0] ?? 0) - (fractions[1] ?? 0)) / 2) : 0;
  return Math.trunc((1 - deviation) * 100);
}

function images(pod: PodSpec, node: NodeSpec, cluster: Cluster): number {
  const [least, mostEach] = [23 * 1024 * 1024, 1024 * 1024 * 1024];
  const containers = pod.containers.length + (pod.initContainers ?? []).length;
  let sum = 0;
  for (const image of pod.images ?? []) {
    const size = node.images?.[image];
    const holders = cluster.nodes.filter((n) => n.images?.[image] !== undefined).length;
    if (size !== undefined) sum += Math.trunc(size * (holders / cluster.nodes.length));
  }
  const most = mostEach * containers;
  return Math.trunc((100 * (Math.min(Math.max(sum, least), most) - least)) / (most - least));
}

function spread(pod: PodSpec, feasible: readonly NodeSpec[], cluster: Cluster): Scores {
  const soft = (pod.topologySpread ?? []).filter((c) => c.whenUnsatisfiable === "ScheduleAnyway");
  if (soft.length === 0) return new Map();
  const hasAll = (n: NodeSpec) => soft.every((c) => match.topologyValue(n, c.topologyKey) !== undefined);
  const scored = feasible.filter(hasAll);
  const raw = scoresOf(scored, (node) => {
    let score = 0;
    for (const c of soft) {
      const value = (n: NodeSpec) => match.topologyValue(n, c.topologyKey);
      const byHost = match.isHostnameKey(c.topologyKey);
      const domains = byHost ? scored.length : new Set(scored.map(value)).size;
      const counted = cluster.bound.filter((b) => {
        if (b.terminating || !counts(c, pod, b.pod) || countsNothing(c, pod)) return false;
        return byHost
          ? b.node.name === node.name
          : value(b.node) === value(node) && hasAll(b.node) && included(c, pod, b.node);
      });
      score += counted.length * Math.log(domains + 2) + (c.maxSkew - 1);
    }
    return Math.round(score);
  });
  const max = Math.max(0, ...raw.values());
  const min = Math.min(...raw.values());
  return scoresOf(feasible, (node) => {
    const score = raw.get(node.name);
    if (score === undefined) return 0;
    return max === 0 ? 100 : Math.trunc((100 * (max + min - score)) / max);
  });
}

function affinity(pod: PodSpec, feasible: readonly NodeSpec[], cluster: Cluster): Scores {
  const raw = scoresOf(feasible, (node) => {
    let score = 0;
    for (const b of cluster.bound) {
      const meets = (key: string) => {
        const value = match.topologyValue(b.node, key);
        return value !== undefined && value === match.topologyValue(node, key);
      };
      for (const [sign, own, theirs] of [
        [1, pod.podAffinity, b.pod.podAffinity],
        [-1, pod.podAntiAffinity, b.pod.podAntiAffinity],
      ] as const) {
        for (const { weight, term } of own?.preferred ?? [])
          if (match.podTermMatches(term, pod, b.pod) && meets(term.topologyKey)) score += sign * weight;
        for (const { weight, term } of theirs?.preferred ?? [])
          if (match.podTermMatches(term, b.pod, pod) && meets(term.topologyKey)) score += sign * weight;
      }
      for (const term of b.pod.podAffinity?.required ?? [])
        if (match.podTermMatches(term, b.pod, pod) && meets(term.topologyKey)) score += 1;
    }
    return score;
  });
  const max = Math.max(...raw.values());
  const min = Math.min(...raw.values());
  return new Map(
    [...raw].map(([name, score]) => [name, max > min ? Math.trunc(100 * ((score - min) / (max - min))) : 0]),
  );
}
