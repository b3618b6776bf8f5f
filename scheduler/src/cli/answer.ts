import { Fleet } from "../fleet.ts";
import { podKey } from "../pod/pod-key.ts";
import type { PodKey, PodSpec, Profile } from "../types.ts";
import type { Scenario } from "./scenario.ts";

/** The result for one pending pod. Fields without a value are left out. */
export interface PodAnswer {
  readonly pod: PodKey;
  readonly feasible: readonly string[];
  readonly why?: Readonly<Record<string, string>>;
  readonly total?: Readonly<Record<string, number>>;
  readonly ties?: readonly string[];
  readonly chosen?: string;
  readonly preempt?: PreemptAnswer;
}

interface PreemptAnswer {
  readonly candidates: Readonly<Record<string, readonly PodKey[]>>;
  readonly best: readonly string[];
  readonly node?: string;
  readonly bound: boolean;
}

export interface ScenarioAnswer {
  readonly id: string;
  readonly answers: readonly PodAnswer[];
}

// The scenario format's name for the step that restricts nodes by name.
const BY_NAME = "PreFilter:[NodeAffinity]";

/**
 * Places the scenario's pods one after another. @param follow another scheduler's answer: its choices are bound instead
 * of this scheduler's, so that both evaluate each pod in the same fleet.
 */
export function answer(scenario: Scenario, profile: Profile, follow?: ScenarioAnswer): ScenarioAnswer {
  const fleet = new Fleet({ profile });
  for (const node of scenario.nodes) fleet.setNode(node);
  for (const pod of scenario.existing) fleet.bind(pod, pod.node);
  const answers = scenario.pending.map((pod, index) => {
    const own = answerPod(fleet, pod, scenario.preemption);
    bind(fleet, pod, follow === undefined ? own : follow.answers[index]);
    return own;
  });
  return { id: scenario.id, answers };
}

function answerPod(fleet: Fleet, pod: PodSpec, preemption: boolean): PodAnswer {
  const { feasible, rejections } = fleet.explain(pod);
  const why = rejections.map(({ node, filter }) => [node, filter === "NodeName" ? BY_NAME : filter] as const);
  const base = {
    pod: podKey(pod),
    feasible,
    ...(why.length > 0 ? { why: Object.fromEntries(why) } : {}),
  };
  if (feasible.length === 0) return preemption ? { ...base, ...answerPreemption(fleet, pod) } : base;
  const { totals, chosen } = fleet.rank(pod);
  if (chosen === undefined) return base;
  const most = Math.max(...totals.values());
  const ties = feasible.filter((node) => totals.get(node) === most);
  const total = Object.fromEntries(feasible.map((node) => [node, totals.get(node) ?? 0]));
  return { ...base, total, ties, chosen };
}

function answerPreemption(fleet: Fleet, pod: PodSpec): Pick<PodAnswer, "preempt" | "chosen"> {
  const { all, best } = fleet.preemptionCandidates(pod);
  const choice = fleet.preempt(pod);
  if (choice === undefined) return {};
  const candidates = Object.fromEntries(all.map(({ node, victims }) => [node, victims]));
  return { chosen: choice.node, preempt: { candidates, best, node: choice.node, bound: true } };
}

function bind(fleet: Fleet, pod: PodSpec, given: PodAnswer | undefined): void {
  if (given?.preempt?.bound) {
    for (const victim of given.preempt.candidates[given.preempt.node ?? ""] ?? []) fleet.unbind(victim);
  }
  if (given?.chosen !== undefined) fleet.bind(pod, given.chosen);
}
