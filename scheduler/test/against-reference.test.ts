import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import type { InfeasibleClass } from "../src/place/infeasible-class.ts";
import type { PodSpec, Profile } from "../src/types.ts";
import { Mirror } from "./builders/mirror.ts";
import { randomNode, randomPod } from "./builders/random-pod.ts";
import { reject } from "./reference/filter.ts";
import { best, candidates, victimKeys } from "./reference/preempt.ts";
import { type KubeProfile, totals } from "./reference/score.ts";

// Enough to combine every pair of rules many times in a few seconds. Use SEEDS=20000 for a long run.
const SEEDS = Number(process.env.SEEDS ?? 400);
const STEPS = 24;

for (const profile of ["kube-most", "kube-least", "pack"] as const) {
  test(`${profile}: after any sequence of changes the fleet gives the same results as the reference`, () => {
    for (let seed = 1; seed <= SEEDS; seed++) runSeed(profile, seed);
  });
}

function runSeed(profile: Profile, seed: number): void {
  const random = randomOf(seed);
  const mirror = new Mirror(profile);
  const names = Array.from({ length: 2 + random.below(9) }, (_, i) => `n${i}`);
  for (const name of names) mirror.setNode(randomNode(random, name));
  const rich = random.pick([0.2, 0.5, 1]);
  const templates = Array.from({ length: 1 + random.below(5) }, (_, i) => randomPod(random, `t${i}`, rich));
  const waiting: Waiting[] = [];
  for (let step = 0; step < STEPS; step++) {
    try {
      takeStep(mirror, random, templates, step, names);
      checkWaiting(mirror, waiting);
      const pod = { ...random.pick(templates), name: `w${step}` };
      if (isInfeasible(mirror, pod)) waiting.push({ pod, infeasible: mirror.fleet.infeasibleClass(pod) });
    } catch (error) {
      throw new Error(`profile ${profile}, seed ${seed}, step ${step}`, { cause: error });
    }
  }
}

/** A pod for which no node was feasible, and which preemption could not help. */
interface Waiting {
  readonly pod: PodSpec;
  readonly infeasible: InfeasibleClass;
}

function isInfeasible({ fleet }: Mirror, pod: PodSpec): boolean {
  return fleet.place(pod) === undefined && fleet.preempt(pod) === undefined;
}

/** Checks that an infeasible class never hides a feasible node: while it reports no chance, no node fits. */
function checkWaiting(mirror: Mirror, waiting: Waiting[]): void {
  for (const [index, { pod, infeasible }] of [...waiting.entries()].reverse()) {
    const chance = infeasible.fitChance();
    const fitsNowhere = isInfeasible(mirror, pod);
    if (chance === "no") assert.ok(fitsNowhere, "a pod that may have a node is woken");
    else if (fitsNowhere) waiting[index] = { pod, infeasible: mirror.fleet.infeasibleClass(pod) };
    else waiting.splice(index, 1);
  }
}

function takeStep(
  mirror: Mirror,
  random: Random,
  templates: readonly PodSpec[],
  step: number,
  names: readonly string[],
): void {
  const kind = random.next();
  const pods = mirror.podKeys;
  const pod = { ...random.pick(templates), name: `p${step}` };
  if (kind < 0.08) mirror.setNode(randomNode(random, random.pick(names)));
  else if (kind < 0.11 && mirror.nodeNames.length > 1) mirror.removeNode(random.pick(mirror.nodeNames));
  else if (kind < 0.2 && pods.length > 0) mirror.unbind(random.pick(pods));
  else if (kind < 0.25 && pods.length > 0) mirror.setTerminating(random.pick(pods), random.chance(0.8));
  else if (kind < 0.29 && pods.length > 0) mirror.update(random.pick(pods), random.pick(templates));
  else if (kind < 0.4) mirror.bind(pod, random.pick(mirror.nodeNames));
  else {
    const node = check(mirror, pod, random.chance(0.3));
    if (node !== undefined) mirror.bind(pod, node);
  }
}

/** Compares every result for the pod with the reference, and with a newly built fleet. Returns the choice. */
function check(mirror: Mirror, pod: PodSpec, cached: boolean): string | undefined {
  const { cluster, fleet } = mirror;
  const expected = new Map(cluster.nodes.map((node) => [node.name, reject(pod, node, cluster)]));
  const feasible = cluster.nodes.filter((node) => expected.get(node.name) === undefined);
  const explanation = fleet.explain(pod);
  assert.deepEqual(explanation.feasible, feasible.map((node) => node.name).sort(), "feasible");
  for (const { node, filter, resolvable } of explanation.rejections) {
    const shown = filter === "NodeName" ? "PreFilter:[NodeAffinity]" : filter;
    assert.deepEqual({ filter: shown, resolvable }, expected.get(node), node);
  }
  // A class that is requested often is placed from its cache; the other pods use the scan.
  if (cached) for (let i = 0; i < 32; i++) fleet.place(pod);
  const { chosen, totals: scores } = fleet.rank(pod);
  if (fleet.profile !== "pack")
    checkScores(totals(pod, feasible, cluster, fleet.profile as KubeProfile), scores, chosen);
  else assert.equal(chosen === undefined, feasible.length === 0);
  if (chosen !== undefined && fleet.profile === "pack") {
    assert.equal(scores.get(chosen), Math.max(...scores.values()), "the choice has the highest total");
  }
  assert.equal(mirror.rebuild().place(pod), chosen, "a fleet built afresh chooses the same node");
  checkPreemption(mirror, pod);
  return chosen;
}

function checkScores(
  expected: ReadonlyMap<string, number> | undefined,
  actual: ReadonlyMap<string, number>,
  chosen: string | undefined,
): void {
  if (expected === undefined) {
    assert.equal(chosen, undefined, "a preference that doesn't parse");
    return;
  }
  assert.deepEqual(new Map([...actual].sort()), new Map([...expected].sort()), "totals");
  if (expected.size === 0) assert.equal(chosen, undefined);
  else
    assert.equal(expected.get(chosen ?? ""), Math.max(...expected.values()), "the choice is among the ties");
}

function checkPreemption({ cluster, fleet }: Mirror, pod: PodSpec): void {
  const expected = candidates(pod, cluster);
  const actual = fleet.preemptionCandidates(pod);
  const listed = (all: readonly [string, readonly string[]][]) =>
    new Map([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
  assert.deepEqual(
    listed(actual.all.map(({ node, victims }) => [node, victims])),
    listed(expected.map((candidate) => [candidate.node, victimKeys(candidate)])),
    "preemption candidates",
  );
  assert.deepEqual(
    actual.best,
    best(expected)
      .map(({ node }) => node)
      .sort(),
    "best candidates",
  );
  const choice = fleet.preempt(pod);
  if (choice === undefined) assert.equal(expected.length, 0);
  else assert.ok(actual.best.includes(choice.node));
}
