import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import { OF_TOOLS } from "./metadata-fields.ts";
import {
  type Draft,
  list,
  lost,
  NO_SCOPE,
  noEffect,
  oneOf,
  part,
  port,
  type Rules,
  readFields,
  type Scope,
  text,
  textsOf,
  whole,
} from "./rules.ts";
import type { Workload } from "./workload-fields.ts";

const ASSIGNED = lost("has no counterpart: the coordinator assigns addresses");
const FAMILIES = noEffect("a service has an address of each family that the fleet has");
const EVERYWHERE = "has no counterpart: every host leads to all pods";

const annotation =
  (name: string): ((field: Field, into: Draft) => void) =>
  (field, into) => {
    into.annotations = { ...(into.annotations as object), [name]: field.text() };
  };

export const SERVICE_PORT_FIELDS: Rules = {
  appProtocol: lost("has no counterpart"),
  name: text,
  nodePort: whole,
  port: whole,
  protocol: text,
  targetPort: port,
};

export const CLIENT_IP_FIELDS: Rules = { timeoutSeconds: annotation("forage.dev/session-affinity-seconds") };
export const AFFINITY_CONFIG_FIELDS: Rules = {
  clientIP: (field, into, _key, scope) => void readFields(field, CLIENT_IP_FIELDS, scope, into),
};

/** The rules for all fields of a service. */
export const SERVICE_FIELDS: Rules = {
  allocateLoadBalancerNodePorts: noEffect(
    "a load balancer has no node ports, except where nodePort requests one",
  ),
  clusterIP: (field, into) => {
    if (field.text() === "None") into.type = "Headless";
    else if (field.text() !== "") field.lose("has no counterpart: the coordinator assigns addresses");
  },
  clusterIPs: noEffect("follows clusterIP"),
  externalIPs: ASSIGNED,
  externalName: lost("has no counterpart: use the name itself"),
  externalTrafficPolicy: oneOf(["Cluster"], EVERYWHERE, true),
  healthCheckNodePort: noEffect("follows externalTrafficPolicy: Local"),
  internalTrafficPolicy: oneOf(["Cluster"], EVERYWHERE, true),
  ipFamilies: FAMILIES,
  ipFamilyPolicy: FAMILIES,
  loadBalancerClass: lost("has no counterpart: nodes announce the address"),
  loadBalancerIP: annotation("forage.dev/load-balancer-ip"),
  loadBalancerSourceRanges: lost("has no counterpart: every client in the network reaches the address"),
  ports: list(SERVICE_PORT_FIELDS),
  publishNotReadyAddresses: lost("has no counterpart: only ready pods are endpoints"),
  selector: noEffect("read on its own"),
  sessionAffinity: text,
  sessionAffinityConfig: part(AFFINITY_CONFIG_FIELDS),
  trafficDistribution: lost("has no counterpart"),
  type: (field, into) => {
    const type = field.text();
    if (!["ClusterIP", "NodePort", "LoadBalancer"].includes(type)) field.lose(`"${type}" has no counterpart`);
    else if (type !== "ClusterIP") into.type = type;
  },
};

/**
 * Reads a service of the workload that its selector selects. Returns undefined if the service is
 * omitted.
 */
export function readService(item: Item, workloads: readonly Workload[]): Draft | undefined {
  const { spec, field } = item;
  if (spec === undefined) return field.fail("has no spec");
  const target = targetOf(item, spec, workloads);
  if (target === undefined) return undefined;
  const scope: Scope = { ...NO_SCOPE, ports: target.template.ports };
  const { session_affinity_config, ...read } = readFields(spec, SERVICE_FIELDS, scope);
  const { annotations } = (session_affinity_config ?? {}) as { readonly annotations?: Draft };
  const isSticky = read.session_affinity === "ClientIP";
  const all = {
    ...carriedAnnotations(item),
    ...(read.annotations as object),
    ...(isSticky ? annotations : {}),
  };
  return {
    target: target.item.name,
    ...read,
    ...(Object.keys(all).length > 0 && { annotations: all }),
  };
}

const KNOWN =
  /^(config\.linkerd\.io|service\.kubernetes\.io|forage\.dev|balancer\.linkerd\.io|retry\.linkerd\.io|timeout\.linkerd\.io)\//;

/**
 * Returns the annotations that Forage supports. Others are settings of cloud controllers or other
 * programs.
 */
function carriedAnnotations({ field, annotations }: Item): Readonly<Record<string, string>> {
  for (const [key, value] of field.get("metadata")?.get("annotations")?.entries() ?? []) {
    if (KNOWN.test(key) || OF_TOOLS.test(key)) continue;
    value.lose("is a setting of a program that does not read Forage's services");
  }
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => KNOWN.test(key)));
}

function targetOf(item: Item, spec: Field, workloads: readonly Workload[]): Workload | undefined {
  if (spec.get("type")?.text() === "ExternalName")
    return spec
      .get("type")
      ?.lose("ExternalName has no counterpart: the service is left out; use the name itself");
  const selector = spec.get("selector");
  const required = selector === undefined ? {} : textsOf(selector);
  if (selector === undefined || Object.keys(required).length === 0)
    return spec.lose("has no selector: endpoints are the pods of a workload, and the service is left out");
  const found = workloads.filter(
    ({ item: { namespace }, template: { labels } }) =>
      namespace === item.namespace && Object.entries(required).every(([key, value]) => labels[key] === value),
  );
  const [first, ...more] = found;
  if (first === undefined)
    return selector.fail("selects no workload of the files: read the service together with its workload");
  if (more.length === 0) return first;
  const names = found.map(({ item: { name } }) => name).join(", ");
  return selector.fail(`selects several workloads (${names}): a service has one here`);
}
