import { as, list, lost, nonZero, oneOf, part, type Rules, text, textMap, texts, whole } from "./rules.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

export const REQUIREMENT_FIELDS: Rules = { key: text, operator: text, values: texts };

export const NODE_TERM_FIELDS: Rules = {
  matchExpressions: list(REQUIREMENT_FIELDS),
  matchFields: list(REQUIREMENT_FIELDS),
};
export const NODE_SELECTOR_FIELDS: Rules = { nodeSelectorTerms: as("terms", list(NODE_TERM_FIELDS)) };
export const PREFERRED_NODE_FIELDS: Rules = { preference: part(NODE_TERM_FIELDS), weight: whole };

export const NODE_AFFINITY_FIELDS: Rules = {
  [PREFERRED]: as("preferred", list(PREFERRED_NODE_FIELDS)),
  [REQUIRED]: as("required", part(NODE_SELECTOR_FIELDS)),
};

export const LABEL_SELECTOR_FIELDS: Rules = {
  matchExpressions: list(REQUIREMENT_FIELDS),
  matchLabels: textMap,
};

const NO_KEYS = lost("has no counterpart: write the labels out in labelSelector");

export const POD_TERM_FIELDS: Rules = {
  labelSelector: part(LABEL_SELECTOR_FIELDS),
  matchLabelKeys: NO_KEYS,
  mismatchLabelKeys: NO_KEYS,
  namespaceSelector: lost("has no counterpart: name the namespaces"),
  namespaces: texts,
  topologyKey: text,
};

export const WEIGHTED_POD_TERM_FIELDS: Rules = {
  podAffinityTerm: as("term", part(POD_TERM_FIELDS)),
  weight: whole,
};

export const POD_AFFINITY_FIELDS: Rules = {
  [PREFERRED]: as("preferred", list(WEIGHTED_POD_TERM_FIELDS)),
  [REQUIRED]: as("required", list(POD_TERM_FIELDS)),
};

export const AFFINITY_FIELDS: Rules = {
  nodeAffinity: part(NODE_AFFINITY_FIELDS),
  podAffinity: part(POD_AFFINITY_FIELDS),
  podAntiAffinity: part(POD_AFFINITY_FIELDS),
};

export const TOLERATION_FIELDS: Rules = {
  effect: text,
  key: text,
  operator: oneOf(["Equal", "Exists"], "has no counterpart"),
  tolerationSeconds: nonZero("for good"),
  value: text,
};

export const SPREAD_FIELDS: Rules = {
  labelSelector: part(LABEL_SELECTOR_FIELDS),
  matchLabelKeys: NO_KEYS,
  maxSkew: whole,
  minDomains: lost("has no counterpart"),
  nodeAffinityPolicy: oneOf(["Honor"], "has no counterpart", true),
  nodeTaintsPolicy: oneOf(["Ignore"], "has no counterpart", true),
  topologyKey: text,
  whenUnsatisfiable: text,
};
