import type * as wire from "@forage/proto/forest/v1/forage";
import type * as scheduler from "@forage/scheduler";

/** Converts a pod's placement rules from messages of the API to the scheduler's types. Invalid values match nothing. */

export function affinityOf({
  nodeAffinity,
  podAffinity,
  podAntiAffinity,
}: wire.Affinity): Pick<scheduler.PodSpec, "nodeAffinity" | "podAffinity" | "podAntiAffinity"> {
  return {
    ...(nodeAffinity !== undefined && { nodeAffinity: nodeAffinityOf(nodeAffinity) }),
    ...(podAffinity !== undefined && { podAffinity: podAffinityOf(podAffinity) }),
    ...(podAntiAffinity !== undefined && { podAntiAffinity: podAffinityOf(podAntiAffinity) }),
  };
}

export function tolerationsOf(tolerations: readonly wire.Toleration[]): scheduler.Toleration[] {
  return tolerations.flatMap(({ key, operator, value, effect }) => {
    if (!isOneOf(operator, ["", "Equal", "Exists"]) || !isOneOf(effect, ["", ...TAINT_EFFECTS])) return [];
    return [{ key, operator, value, effect }];
  });
}

export function taintsFrom(
  taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[],
): scheduler.Taint[] {
  return taints.flatMap(({ key, value, effect }) => {
    return isOneOf(effect, TAINT_EFFECTS) ? [{ key, value, effect }] : [];
  });
}

export function spreadOf(
  constraints: readonly wire.TopologySpreadConstraint[],
): scheduler.TopologySpreadConstraint[] {
  return constraints.map(({ maxSkew, topologyKey, whenUnsatisfiable, labelSelector }) => ({
    maxSkew,
    topologyKey,
    whenUnsatisfiable: whenUnsatisfiable === "ScheduleAnyway" ? "ScheduleAnyway" : "DoNotSchedule",
    ...(labelSelector !== undefined && { labelSelector: selectorOf(labelSelector) }),
  }));
}

export const TAINT_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

export function isOneOf<T extends string>(text: string, choices: readonly T[]): text is T {
  return (choices as readonly string[]).includes(text);
}

function nodeAffinityOf({ preferred, required }: wire.NodeAffinity): scheduler.NodeAffinity {
  return {
    ...(required !== undefined && { required: required.terms.map(nodeTermOf) }),
    preferred: preferred.map(({ weight, preference }) => {
      return { weight, preference: preference === undefined ? {} : nodeTermOf(preference) };
    }),
  };
}

function nodeTermOf({ matchExpressions, matchFields }: wire.NodeSelectorTerm): scheduler.NodeSelectorTerm {
  return {
    matchExpressions: matchExpressions.map(requirementOf),
    matchFields: matchFields.map(requirementOf),
  };
}

function podAffinityOf({ preferred, required }: wire.PodAffinity): scheduler.PodAffinity {
  return {
    required: required.map(podTermOf),
    preferred: preferred.flatMap(({ weight, term }) => {
      return term === undefined ? [] : [{ weight, term: podTermOf(term) }];
    }),
  };
}

function podTermOf({
  labelSelector,
  topologyKey,
  namespaces,
}: wire.PodAffinityTerm): scheduler.PodAffinityTerm {
  return {
    topologyKey,
    namespaces,
    ...(labelSelector !== undefined && { labelSelector: selectorOf(labelSelector) }),
  };
}

function selectorOf({ matchLabels, matchExpressions }: wire.LabelSelector): scheduler.LabelSelector {
  return { matchLabels, matchExpressions: matchExpressions.map(requirementOf) };
}

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] as const;

function requirementOf({
  key,
  operator,
  values,
}: wire.NodeSelectorRequirement): scheduler.SelectorRequirement {
  return isOneOf(operator, OPERATORS) ? { key, operator, values } : { key, operator: "In", values: [] };
}
