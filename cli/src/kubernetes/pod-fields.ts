import type { Field } from "../conversion/field.ts";
import { POD_SECURITY_FIELDS, readContainer } from "./container-fields.ts";
import { TEMPLATE_METADATA_FIELDS } from "./metadata-fields.ts";
import { AFFINITY_FIELDS, SPREAD_FIELDS, TOLERATION_FIELDS } from "./placement-fields.ts";
import {
  type Draft,
  flag,
  list,
  lost,
  NO_SCOPE,
  noEffect,
  nonZero,
  oneOf,
  part,
  type Rules,
  readFields,
  type Scope,
  text,
  textMap,
  texts,
} from "./rules.ts";
import { readVolumes } from "./volume-fields.ts";

const HOST_ONLY = lost("is a setting of the host that pods don't have");
const ELSEWHERE = noEffect("read on its own");
const CLASS = noEffect("the priority class determines it");

export const DNS_OPTION_FIELDS: Rules = { name: text, value: text };
export const DNS_FIELDS: Rules = {
  nameservers: texts,
  options: list(DNS_OPTION_FIELDS),
  searches: texts,
};
export const PULL_SECRET_FIELDS: Rules = { name: text };

/** The rules for all fields of a pod. */
export const POD_FIELDS: Rules = {
  activeDeadlineSeconds: lost("has no counterpart for pods: jobs have a deadline"),
  affinity: part(AFFINITY_FIELDS),
  automountServiceAccountToken: (field) => void field.switch(),
  containers: ELSEWHERE,
  dnsConfig: part(DNS_FIELDS),
  dnsPolicy: oneOf(
    ["ClusterFirst", "Default", "None"],
    "has no counterpart: names of services are known to pods with a network of their own",
  ),
  enableServiceLinks: noEffect("services are found by their names in DNS"),
  ephemeralContainers: ELSEWHERE,
  hostAliases: lost("has no counterpart: keep names in DNS"),
  hostIPC: HOST_ONLY,
  hostNetwork: flag,
  hostPID: HOST_ONLY,
  hostUsers: (field) => {
    if (!field.switch()) field.lose("has no counterpart: pods have the host's user ids");
  },
  hostname: lost("has no counterpart: a pod's host name is its own name"),
  hostnameOverride: lost("has no counterpart: a pod's host name is its own name"),
  imagePullSecrets: (field, into, _key, scope) => {
    into.image_pull_secrets = field
      .items()
      .map((item) => readFields(item, PULL_SECRET_FIELDS, scope).name)
      .filter((name) => name !== undefined);
  },
  initContainers: ELSEWHERE,
  nodeName: (field, into) => {
    into.node_selector = { ...(into.node_selector as object), "kubernetes.io/hostname": field.text() };
  },
  nodeSelector: (field, into, _key, scope) => {
    const read: Draft = {};
    textMap(field, read, "labels", scope);
    into.node_selector = { ...(into.node_selector as object), ...(read.labels as object) };
  },
  os: (field) => {
    for (const [key, value] of field.entries())
      if (key !== "name") value.fail("is an unknown field");
      else if (value.text() !== "linux") value.lose("has no counterpart: hosts run Linux");
  },
  overhead: noEffect("the runtime class determines it"),
  preemptionPolicy: CLASS,
  priority: CLASS,
  priorityClassName: text,
  readinessGates: lost("has no counterpart: probes decide"),
  resourceClaims: lost("has no counterpart: devices are extended resources"),
  resources: lost("has no counterpart: containers have requests and limits"),
  restartPolicy: text,
  runtimeClassName: text,
  schedulerName: oneOf(["default-scheduler"], "has no counterpart: there is one scheduler", true),
  schedulingGates: lost("has no counterpart"),
  securityContext: part(POD_SECURITY_FIELDS),
  serviceAccount: (field, into) => {
    into.service_account_name ??= field.text();
  },
  serviceAccountName: text,
  setHostnameAsFQDN: lost("has no counterpart: a pod's host name is its own name"),
  shareProcessNamespace: lost("has no counterpart: containers have process ids of their own"),
  subdomain: lost("has no counterpart: pods have names below their headless service"),
  terminationGracePeriodSeconds: nonZero("30 s"),
  tolerations: list(TOLERATION_FIELDS),
  topologySpreadConstraints: list(SPREAD_FIELDS),
  volumes: ELSEWHERE,
  schedulingGroup: lost("has no counterpart: pods are placed one by one"),
  workloadRef: lost("has no counterpart"),
};

export const TEMPLATE_FIELDS: Rules = { metadata: ELSEWHERE, spec: ELSEWHERE };

export interface Template {
  readonly container: Draft;
  readonly sidecars: readonly Draft[];
  readonly initContainers: readonly Draft[];
  readonly volumes: readonly Draft[];
  readonly pod: Draft;
  readonly labels: Readonly<Record<string, string>>;
  /** The numbers of the ports that the pod's containers name. */
  readonly ports: ReadonlyMap<string, number>;
}

/**
 * Reads the template of a workload's pods. The first container becomes the main one, and the others
 * become sidecars.
 */
export function readTemplate(template: Field, keysOf: Scope["keysOf"]): Template | undefined {
  const spec = template.get("spec");
  if (spec === undefined) return template.fail("has no spec with containers");
  const ports = portNames(spec);
  const scope: Scope = { ...NO_SCOPE, ports, keysOf };
  readFields(template, TEMPLATE_FIELDS, scope);
  const metadata = template.get("metadata");
  const { labels = {}, annotations } =
    metadata === undefined ? {} : readFields(metadata, TEMPLATE_METADATA_FIELDS, scope);
  const pod = readFields(spec, POD_FIELDS, scope);
  refuseToken(spec, pod);
  const { volumes, lost: lostVolumes } = readVolumes(spec.get("volumes"), scope);
  const read = (field: Field): Draft => readContainer(field, { ...scope, lostVolumes });
  const [main, ...others] = spec.get("containers")?.items() ?? [];
  if (main === undefined) return spec.fail("has no containers");
  const inits = (spec.get("initContainers")?.items() ?? []).map((field) => ({
    field,
    staysRunning: field.get("restartPolicy")?.text() === "Always",
  }));
  return {
    container: read(main),
    sidecars: [...inits.filter((each) => each.staysRunning).map(({ field }) => field), ...others].map(read),
    initContainers: inits.filter((each) => !each.staysRunning).map(({ field }) => read(field)),
    volumes,
    pod: { ...pod, ...(annotations !== undefined && { annotations }), labels },
    labels: labels as Readonly<Record<string, string>>,
    ports,
  };
}

/**
 * Reports a service account whose token is not mounted, because in Forage a pod with a service
 * account gets its token.
 */
function refuseToken(spec: Field, pod: Draft): void {
  const mount = spec.get("automountServiceAccountToken");
  if (mount !== undefined && mount.text() === "false" && pod.service_account_name !== undefined)
    mount.lose("has no counterpart: pods with a service account get its token");
}

function portNames(spec: Field): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const containers = [spec.get("containers"), spec.get("initContainers")];
  for (const container of containers.flatMap((each) => (each?.kind === "list" ? each.items() : [])))
    for (const item of container.get("ports")?.items() ?? []) {
      const [name, number] = [item.get("name"), item.get("containerPort")];
      if (name !== undefined && number !== undefined && !found.has(name.text()))
        found.set(name.text(), number.whole());
    }
  return found;
}
