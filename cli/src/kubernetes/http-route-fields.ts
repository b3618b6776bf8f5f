import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import {
  type Draft,
  list,
  lost,
  NO_SCOPE,
  noEffect,
  oneOf,
  part,
  type ReadField,
  type Rules,
  readFields,
  snakeCase,
  text,
  texts,
  whole,
} from "./rules.ts";

export const PATH_MATCH_FIELDS: Rules = { type: text, value: text };
export const VALUE_MATCH_FIELDS: Rules = { name: text, type: text, value: text };
export const MATCH_FIELDS: Rules = {
  headers: list(VALUE_MATCH_FIELDS),
  method: text,
  path: part(PATH_MATCH_FIELDS),
  queryParams: list(VALUE_MATCH_FIELDS),
};

export const HEADER_VALUE_FIELDS: Rules = { name: text, value: text };

/** Converts a list of names and values to a mapping. */
const headers: ReadField = (field, into, key, scope) => {
  const pairs = field.items().map((item) => readFields(item, HEADER_VALUE_FIELDS, scope));
  into[key] = Object.fromEntries(pairs.map(({ name, value }) => [String(name), String(value ?? "")]));
};
export const HEADER_MODIFIER_FIELDS: Rules = { add: headers, remove: texts, set: headers };

export const REDIRECT_PATH_FIELDS: Rules = {
  replaceFullPath: (field, into) => {
    into.path = field.text();
  },
  replacePrefixMatch: lost("has no counterpart in a redirect: write the whole path"),
  type: noEffect("the other fields determine it"),
};
export const REDIRECT_FIELDS: Rules = {
  hostname: text,
  path: (field, into, _key, scope) => void readFields(field, REDIRECT_PATH_FIELDS, scope, into),
  port: whole,
  scheme: text,
  statusCode: whole,
};

export const REWRITE_PATH_FIELDS: Rules = {
  replaceFullPath: (field, into) => {
    into.path = { type: "Exact", value: field.text() };
  },
  replacePrefixMatch: (field, into) => {
    into.path = { type: "PathPrefix", value: field.text() };
  },
  type: noEffect("the other fields determine it"),
};
export const REWRITE_FIELDS: Rules = {
  hostname: text,
  path: (field, into, _key, scope) => void readFields(field, REWRITE_PATH_FIELDS, scope, into),
};

const CORE_GROUP = oneOf([""], "has no counterpart: requests are led to services", true);
const SERVICE_KIND = oneOf(["Service"], "has no counterpart: requests are led to services", true);
const OTHER_NAMESPACE = lost("has no counterpart: a route leads to services of its own namespace");

export const MIRROR_BACKEND_FIELDS: Rules = {
  group: CORE_GROUP,
  kind: SERVICE_KIND,
  name: (field, into) => {
    into.service = field.text();
  },
  namespace: OTHER_NAMESPACE,
  port: whole,
};
export const MIRROR_FIELDS: Rules = {
  backendRef: (field, into, _key, scope) => void readFields(field, MIRROR_BACKEND_FIELDS, scope, into),
  fraction: lost("has no counterpart: every request is copied"),
  percent: lost("has no counterpart: every request is copied"),
};

export const FILTER_FIELDS: Rules = {
  cors: lost("has no counterpart"),
  extensionRef: lost("has no counterpart"),
  externalAuth: lost("has no counterpart"),
  requestHeaderModifier: part(HEADER_MODIFIER_FIELDS),
  requestMirror: part(MIRROR_FIELDS),
  requestRedirect: part(REDIRECT_FIELDS),
  responseHeaderModifier: part(HEADER_MODIFIER_FIELDS),
  type: noEffect("the other fields determine it"),
  urlRewrite: part(REWRITE_FIELDS),
};

export const ROUTE_BACKEND_FIELDS: Rules = {
  ...MIRROR_BACKEND_FIELDS,
  filters: lost("has no counterpart: a rule has filters, its backends don't"),
  weight: (field, into) => {
    into.weight = field.whole();
    if (field.whole() > 100) field.lose("is above 100, the most that a route has");
  },
};

/** Converts a duration such as `1m30s` to seconds. */
const duration: ReadField = (field, into, key) => {
  const parts = [...field.text().matchAll(/(\d{1,5})(h|ms|m|s)/g)];
  if (parts.length === 0 || parts.map(([each]) => each).join("") !== field.text()) {
    field.fail("must be a duration such as 1m30s");
    return;
  }
  const milliseconds: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  const sum = parts.reduce(
    (total, [, count, unit]) => total + Number(count) * (milliseconds[unit ?? ""] ?? 0),
    0,
  );
  into[snakeCase(key)] = `${sum / 1000}s`;
};

export const TIMEOUTS_FIELDS: Rules = {
  backendRequest: lost("has no counterpart: the request has one limit, retries included"),
  request: duration,
};

export const ROUTE_RULE_FIELDS: Rules = {
  backendRefs: list(ROUTE_BACKEND_FIELDS),
  filters: (field, into, _key, scope) => {
    into.filters = field
      .items()
      .map((item) => readFields(item, FILTER_FIELDS, scope))
      .filter((filter) => Object.keys(filter).length > 0);
  },
  matches: list(MATCH_FIELDS),
  name: noEffect("rules have no names"),
  retry: lost("has no counterpart"),
  sessionPersistence: lost("has no counterpart: services have session affinity"),
  timeouts: part(TIMEOUTS_FIELDS),
};

export const PARENT_FIELDS: Rules = {
  group: noEffect("a gateway has one kind"),
  kind: noEffect("a gateway has one kind"),
  name: text,
  namespace: noEffect("gateways belong to the fleet"),
  port: lost("has no counterpart: a gateway listens on its two ports"),
  sectionName: lost("has no counterpart: a gateway listens on its two ports"),
};

/** The rules for all fields of an HTTPRoute. */
export const HTTP_ROUTE_FIELDS: Rules = {
  hostnames: texts,
  parentRefs: (field, into, _key, scope) => {
    const [first, second] = field.items();
    second?.lose("has no counterpart: a route has one gateway");
    if (first !== undefined) into.gateway_ref = readFields(first, PARENT_FIELDS, scope).name;
  },
  rules: list(ROUTE_RULE_FIELDS),
  useDefaultGateways: noEffect("a route without a gateway is the default one's"),
};

/** Reads an HTTPRoute as the `route` of a manifest. */
export function readHttpRoute({ spec, field }: Item): Draft | undefined {
  if (spec === undefined) return field.fail("has no spec");
  const { rules = [], ...read } = readFields(spec, HTTP_ROUTE_FIELDS, NO_SCOPE);
  return { ...read, rules: (rules as readonly Draft[]).map((rule, index) => ruleOf(rule, spec, index)) };
}

function ruleOf({ backend_refs, timeouts, ...rule }: Draft, spec: Field, index: number): Draft {
  const backends = (backend_refs ?? []) as readonly Draft[];
  const { request } = (timeouts ?? {}) as { readonly request?: string };
  const filters = (rule.filters ?? []) as readonly Draft[];
  if (backends.length === 0 && !filters.some(({ request_redirect }) => request_redirect !== undefined))
    spec.get("rules")?.items()[index]?.fail("has neither backendRefs nor a redirect");
  // In Kubernetes, a backend without a weight has the weight 1; in Forage it has none if another
  // backend has a weight.
  const hasWeights = backends.some(({ weight }) => weight !== undefined);
  return {
    ...rule,
    ...(backends.length > 0 && {
      backends: backends.map((each) => (hasWeights ? { weight: 1, ...each } : each)),
    }),
    ...(request !== undefined && { timeout: request }),
  };
}
