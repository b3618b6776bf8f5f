import type { SampleTable } from "./sample-table.ts";

const EXPRESSION = { key: "zone", operator: "In", values: ["a"] };
const EXPRESSION_VALUES = {
  key: ["zone", "example.com/disk"],
  operator: ["In", "NotIn"],
  values: ["a", "", "1"],
};
const POD_TERM = { topologyKey: "zone" };

export const SCHEDULING_SAMPLES: SampleTable = {
  Toleration: {
    base: { key: "gpu" },
    values: {
      key: ["gpu", "example.com/gpu"],
      operator: ["Equal", "Exists", ""],
      value: ["yes", ""],
      effect: ["NoExecute", "NoSchedule", "PreferNoSchedule", ""],
      toleration_seconds: [300n, 0n, -1n],
    },
  },
  Affinity: { base: {}, values: {} },
  NodeAffinity: { base: {}, values: {} },
  PreferredSchedulingTerm: { base: { weight: 1, preference: {} }, values: { weight: [100, 1] } },
  NodeSelector: { base: { terms: [{}] }, values: {} },
  NodeSelectorTerm: { base: {}, values: {} },
  NodeSelectorRequirement: { base: EXPRESSION, values: EXPRESSION_VALUES },
  PodAffinity: { base: {}, values: {} },
  PodAntiAffinity: { base: {}, values: {} },
  WeightedPodAffinityTerm: { base: { weight: 1, term: POD_TERM }, values: { weight: [50] } },
  PodAffinityTerm: {
    base: POD_TERM,
    values: { topology_key: ["zone", "kubernetes.io/hostname"], namespaces: ["shop"] },
  },
  LabelSelector: { base: {}, values: { match_labels: [{ app: "web" }, {}] } },
  LabelSelectorRequirement: { base: EXPRESSION, values: EXPRESSION_VALUES },
  TopologySpreadConstraint: {
    base: { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" },
    values: {
      max_skew: [1, 5],
      topology_key: ["zone", "hostname"],
      when_unsatisfiable: ["DoNotSchedule", "ScheduleAnyway"],
    },
  },
};
