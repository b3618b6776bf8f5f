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

const required = "pod_config.affinity.node_affinity.required.terms";
const at = `${required}[0].match_expressions[0]`;
const atField = `${required}[0].match_fields[0]`;
const preferred = "pod_config.affinity.node_affinity.preferred[0]";
const pods = "pod_config.affinity.pod_anti_affinity";

describeSpec("container_service", "node affinity", [
  ["In", expression({ key: "zone", operator: "In", values: ["a", ""] }), []],
  ["In nothing", expression({ key: "zone", operator: "In" }), [`${at}.values`]],
  ["NotIn nothing", expression({ key: "zone", operator: "NotIn" }), [`${at}.values`]],
  ["Exists", expression({ key: "zone", operator: "Exists" }), []],
  ["Exists a value", expression({ key: "zone", operator: "Exists", values: ["a"] }), [`${at}.values`]],
  [
    "DoesNotExist a value",
    expression({ key: "zone", operator: "DoesNotExist", values: ["a"] }),
    [`${at}.values`],
  ],
  ["Gt", expression({ key: "cores", operator: "Gt", values: ["9223372036854775807"] }), []],
  [
    "Gt beyond 63 bits",
    expression({ key: "cores", operator: "Gt", values: ["9223372036854775808"] }),
    [`${at}.values[0]`],
  ],
  ["Gt a word", expression({ key: "cores", operator: "Gt", values: ["many"] }), [`${at}.values[0]`]],
  ["Lt a negative number", expression({ key: "cores", operator: "Lt", values: ["-5"] }), [`${at}.values[0]`]],
  ["Lt two numbers", expression({ key: "cores", operator: "Lt", values: ["1", "2"] }), [`${at}.values`]],
  ["no operator", expression({ key: "zone" }), [`${at}.operator`]],
  ["an unknown operator", expression({ key: "zone", operator: "in", values: ["a"] }), [`${at}.operator`]],
  ["no key", expression({ operator: "Exists" }), [`${at}.key`]],
  ["a broken value", expression({ key: "a", operator: "In", values: ["b c"] }), [`${at}.values[0]`]],
  [
    "257 values",
    expression({ key: "a", operator: "In", values: Array.from({ length: 257 }, () => "b") }),
    [`${at}.values`],
  ],
  ["a node's name", field({ key: "metadata.name", operator: "In", values: ["n1"] }), []],
  ["another field", field({ key: "spec.x", operator: "In", values: ["n1"] }), [`${atField}.key`]],
  ["two names", field({ key: "metadata.name", operator: "In", values: ["n1", "n2"] }), [`${atField}.values`]],
  ["a name with Gt", field({ key: "metadata.name", operator: "Gt", values: ["1"] }), [`${atField}.operator`]],
  [
    "a broken name",
    field({ key: "metadata.name", operator: "NotIn", values: ["N1"] }),
    [`${atField}.values[0]`],
  ],
  ["an empty term", node({ required: { terms: [{}] } }), []],
  ["no terms", node({ required: {} }), [required]],
  ["65 terms", node({ required: { terms: Array.from({ length: 65 }, () => ({})) } }), [required]],
  ["a weight of 100", node({ preferred: [{ weight: 100, preference: {} }] }), []],
  ["a weight of 0", node({ preferred: [{ preference: {} }] }), [`${preferred}.weight`]],
  ["a weight of 101", node({ preferred: [{ weight: 101, preference: {} }] }), [`${preferred}.weight`]],
  ["no preference", node({ preferred: [{ weight: 1 }] }), [`${preferred}.preference`]],
]);

describeSpec("container_service", "pod affinity", [
  ["a term", selector({ matchLabels: { app: "web" } }), []],
  ["both kinds", inPodConfig({ affinity: { podAffinity: { required: [{ topologyKey: "hostname" }] } } }), []],
  ["no topology key", term({ topologyKey: "" }), [`${pods}.required[0].topology_key`]],
  ["a broken topology key", term({ topologyKey: "a b" }), [`${pods}.required[0].topology_key`]],
  ["a broken namespace", term({ namespaces: ["a", "B"] }), [`${pods}.required[0].namespaces[1]`]],
  [
    "65 namespaces",
    term({ namespaces: Array.from({ length: 65 }, () => "a") }),
    [`${pods}.required[0].namespaces`],
  ],
  [
    "a broken label",
    selector({ matchLabels: { a: "b c" } }),
    [`${pods}.required[0].label_selector.match_labels[a]`],
  ],
  [
    "a broken key",
    selector({ matchExpressions: [{ key: "a b", operator: "Exists" }] }),
    [`${pods}.required[0].label_selector.match_expressions[0].key`],
  ],
  [
    "a broken value",
    selector({ matchExpressions: [{ key: "a", operator: "In", values: ["b", "c d"] }] }),
    [`${pods}.required[0].label_selector.match_expressions[0].values[1]`],
  ],
  [
    "In nothing",
    selector({ matchExpressions: [{ key: "a", operator: "In" }] }),
    [`${pods}.required[0].label_selector.match_expressions[0].values`],
  ],
  [
    "Gt, which is for nodes",
    selector({ matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] }),
    [`${pods}.required[0].label_selector.match_expressions[0].operator`],
  ],
  [
    "65 expressions",
    selector({ matchExpressions: Array.from({ length: 65 }, () => ({ key: "a", operator: "Exists" })) }),
    [`${pods}.required[0].label_selector.match_expressions`],
  ],
  [
    "a weight of -1",
    anti({ preferred: [{ weight: -1, term: { topologyKey: "zone" } }] }),
    [`${pods}.preferred[0].weight`],
  ],
  ["no term", anti({ preferred: [{ weight: 1 }] }), [`${pods}.preferred[0].term`]],
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
