import { describeSpec, inPodConfig } from "../../../../test/support/spec-cases.ts";

const node = (nodeAffinity: object) => inPodConfig({ affinity: { nodeAffinity } });
const expression = (fields: object) => node({ required: { terms: [{ matchExpressions: [fields] }] } });
const field = (fields: object) => node({ required: { terms: [{ matchFields: [fields] }] } });
const anti = (fields: object) => inPodConfig({ affinity: { podAntiAffinity: fields } });
const term = (fields: object) => anti({ required: [{ topologyKey: "zone", ...fields }] });
const selector = (labelSelector: object) => term({ labelSelector });
const spread = (...list: readonly object[]) =>
  inPodConfig({
    topologySpreadConstraints: list.map((fields) => {
      return { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", ...fields };
    }),
  });

const REQUIRED = "pod_config.affinity.node_affinity.required.terms";
const AT = `${REQUIRED}[0].match_expressions[0]`;
const AT_FIELD = `${REQUIRED}[0].match_fields[0]`;
const PREFERRED = "pod_config.affinity.node_affinity.preferred[0]";
const PODS = "pod_config.affinity.pod_anti_affinity";

describeSpec("container_service", "node affinity", [
  ["In", expression({ key: "zone", operator: "In", values: ["a", ""] }), []],
  ["In nothing", expression({ key: "zone", operator: "In" }), [`${AT}.values`]],
  ["NotIn nothing", expression({ key: "zone", operator: "NotIn" }), [`${AT}.values`]],
  ["Exists", expression({ key: "zone", operator: "Exists" }), []],
  ["Exists a value", expression({ key: "zone", operator: "Exists", values: ["a"] }), [`${AT}.values`]],
  [
    "DoesNotExist a value",
    expression({ key: "zone", operator: "DoesNotExist", values: ["a"] }),
    [`${AT}.values`],
  ],
  ["Gt", expression({ key: "cores", operator: "Gt", values: ["9223372036854775807"] }), []],
  [
    "Gt beyond 63 bits",
    expression({ key: "cores", operator: "Gt", values: ["9223372036854775808"] }),
    [`${AT}.values[0]`],
  ],
  ["Gt a word", expression({ key: "cores", operator: "Gt", values: ["many"] }), [`${AT}.values[0]`]],
  ["Lt a negative number", expression({ key: "cores", operator: "Lt", values: ["-5"] }), [`${AT}.values[0]`]],
  ["Lt two numbers", expression({ key: "cores", operator: "Lt", values: ["1", "2"] }), [`${AT}.values`]],
  ["no operator", expression({ key: "zone" }), [`${AT}.operator`]],
  ["an unknown operator", expression({ key: "zone", operator: "in", values: ["a"] }), [`${AT}.operator`]],
  ["no key", expression({ operator: "Exists" }), [`${AT}.key`]],
  ["a broken value", expression({ key: "a", operator: "In", values: ["b c"] }), [`${AT}.values[0]`]],
  [
    "257 values",
    expression({ key: "a", operator: "In", values: Array.from({ length: 257 }, () => "b") }),
    [`${AT}.values`],
  ],
  ["a node's name", field({ key: "metadata.name", operator: "In", values: ["n1"] }), []],
  ["another field", field({ key: "spec.x", operator: "In", values: ["n1"] }), [`${AT_FIELD}.key`]],
  [
    "two names",
    field({ key: "metadata.name", operator: "In", values: ["n1", "n2"] }),
    [`${AT_FIELD}.values`],
  ],
  [
    "a name with Gt",
    field({ key: "metadata.name", operator: "Gt", values: ["1"] }),
    [`${AT_FIELD}.operator`],
  ],
  [
    "a broken name",
    field({ key: "metadata.name", operator: "NotIn", values: ["N1"] }),
    [`${AT_FIELD}.values[0]`],
  ],
  ["an empty term", node({ required: { terms: [{}] } }), []],
  ["no terms", node({ required: {} }), [REQUIRED]],
  ["65 terms", node({ required: { terms: Array.from({ length: 65 }, () => ({})) } }), [REQUIRED]],
  ["a weight of 100", node({ preferred: [{ weight: 100, preference: {} }] }), []],
  ["a weight of 0", node({ preferred: [{ preference: {} }] }), [`${PREFERRED}.weight`]],
  ["a weight of 101", node({ preferred: [{ weight: 101, preference: {} }] }), [`${PREFERRED}.weight`]],
  ["no preference", node({ preferred: [{ weight: 1 }] }), [`${PREFERRED}.preference`]],
]);

describeSpec("container_service", "pod affinity", [
  ["a term", selector({ matchLabels: { app: "web" } }), []],
  ["both kinds", inPodConfig({ affinity: { podAffinity: { required: [{ topologyKey: "hostname" }] } } }), []],
  ["no topology key", term({ topologyKey: "" }), [`${PODS}.required[0].topology_key`]],
  ["a broken topology key", term({ topologyKey: "a b" }), [`${PODS}.required[0].topology_key`]],
  ["a broken namespace", term({ namespaces: ["a", "B"] }), [`${PODS}.required[0].namespaces[1]`]],
  [
    "65 namespaces",
    term({ namespaces: Array.from({ length: 65 }, () => "a") }),
    [`${PODS}.required[0].namespaces`],
  ],
  [
    "a broken label",
    selector({ matchLabels: { a: "b c" } }),
    [`${PODS}.required[0].label_selector.match_labels[a]`],
  ],
  [
    "a broken key",
    selector({ matchExpressions: [{ key: "a b", operator: "Exists" }] }),
    [`${PODS}.required[0].label_selector.match_expressions[0].key`],
  ],
  [
    "a broken value",
    selector({ matchExpressions: [{ key: "a", operator: "In", values: ["b", "c d"] }] }),
    [`${PODS}.required[0].label_selector.match_expressions[0].values[1]`],
  ],
  [
    "In nothing",
    selector({ matchExpressions: [{ key: "a", operator: "In" }] }),
    [`${PODS}.required[0].label_selector.match_expressions[0].values`],
  ],
  [
    "the operator Gt, which only node selectors have",
    selector({ matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] }),
    [`${PODS}.required[0].label_selector.match_expressions[0].operator`],
  ],
  [
    "65 expressions",
    selector({ matchExpressions: Array.from({ length: 65 }, () => ({ key: "a", operator: "Exists" })) }),
    [`${PODS}.required[0].label_selector.match_expressions`],
  ],
  [
    "a weight of -1",
    anti({ preferred: [{ weight: -1, term: { topologyKey: "zone" } }] }),
    [`${PODS}.preferred[0].weight`],
  ],
  ["no term", anti({ preferred: [{ weight: 1 }] }), [`${PODS}.preferred[0].term`]],
]);

describeSpec("container_service", "topology spread", [
  ["two keys", spread({}, { topologyKey: "hostname" }), []],
  ["one key in both ways", spread({}, { whenUnsatisfiable: "ScheduleAnyway" }), []],
  ["the same twice", spread({}, { maxSkew: 2 }), ["pod_config.topology_spread_constraints[1]"]],
  ["a skew of 0", spread({ maxSkew: 0 }), ["pod_config.topology_spread_constraints[0].max_skew"]],
  ["a negative skew", spread({ maxSkew: -1 }), ["pod_config.topology_spread_constraints[0].max_skew"]],
  ["no key", spread({ topologyKey: "" }), ["pod_config.topology_spread_constraints[0].topology_key"]],
  [
    "no answer to what else",
    spread({ whenUnsatisfiable: "" }),
    ["pod_config.topology_spread_constraints[0].when_unsatisfiable"],
  ],
  [
    "a broken selector",
    spread({ labelSelector: { matchLabels: { "": "a" } } }),
    ["pod_config.topology_spread_constraints[0].label_selector.match_labels[]"],
  ],
  [
    "17",
    spread(...Array.from({ length: 17 }, (_, i) => ({ topologyKey: `k${i}` }))),
    ["pod_config.topology_spread_constraints"],
  ],
]);
