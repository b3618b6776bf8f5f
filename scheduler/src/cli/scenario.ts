import { selectorMatcher } from "../match/pod-matcher.ts";
import { podKey } from "../pod/pod-key.ts";
import { parseQuantity } from "../quantity/parse-quantity.ts";
import { SchedulerError } from "../scheduler-error.ts";
import type { LabelSelector, NodeSpec, PodSpec } from "../types.ts";
import {
  anything,
  fail,
  flag,
  integer,
  listOf,
  mapOf,
  name,
  object,
  oneOf,
  type Shape,
  text,
} from "./shape.ts";

/** A scenario: a fleet, and pods to place one after another. */
export interface Scenario {
  readonly id: string;
  readonly profile: "most" | "least";
  readonly preemption: boolean;
  readonly nodes: readonly NodeSpec[];
  readonly existing: readonly (PodSpec & { readonly node: string })[];
  readonly pending: readonly PodSpec[];
}

const INT32_MAX = 2 ** 31 - 1;

const quantity: Shape = (value, path) => {
  text(value, path);
  try {
    if (parseQuantity(String(value)) >= 0n) return;
  } catch {
    // The caller reports the error.
  }
  fail(path, `"${value}" is not a quantity of zero or more`);
};

const effect = oneOf("", "NoSchedule", "PreferNoSchedule", "NoExecute");
const labels = mapOf(text);
const quantities = mapOf(quantity);
const requirement = object(
  { key: name, operator: oneOf("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt") },
  { values: listOf(text) },
);
const selectorFields = object({}, { matchLabels: labels, matchExpressions: listOf(requirement) });
const nodeTerm = object({}, { matchExpressions: listOf(requirement), matchFields: listOf(requirement) });
const weight = integer(0, 100);

const selector: Shape = (value, path) => {
  selectorFields(value, path);
  try {
    selectorMatcher(withoutNulls(value) as LabelSelector, [""]);
  } catch (error) {
    fail(path, error instanceof SchedulerError ? error.message : String(error));
  }
};

const podTerm = object({ topologyKey: name }, { labelSelector: selector, namespaces: listOf(name) });
const podAffinity = object(
  {},
  { required: listOf(podTerm), preferred: listOf(object({ weight, term: podTerm })) },
);
const hostPort = object(
  { port: integer(0, 65535) },
  { protocol: oneOf("", "TCP", "UDP", "SCTP"), hostIP: text },
);
const containerFields = { requests: quantities, limits: quantities, hostPorts: listOf(hostPort) };

const podFields = {
  labels,
  priority: integer(-INT32_MAX - 1, INT32_MAX),
  preemptionPolicy: oneOf("Never", "PreemptLowerPriority"),
  initContainers: listOf(object({}, { ...containerFields, restartPolicy: oneOf("", "Always") })),
  nodeSelector: labels,
  tolerations: listOf(object({}, { key: text, operator: oneOf("", "Equal", "Exists"), value: text, effect })),
  nodeAffinity: object(
    {},
    { required: listOf(nodeTerm), preferred: listOf(object({ weight, preference: nodeTerm })) },
  ),
  podAffinity,
  podAntiAffinity: podAffinity,
  topologySpread: listOf(
    object(
      {
        maxSkew: integer(1, INT32_MAX),
        topologyKey: name,
        whenUnsatisfiable: oneOf("DoNotSchedule", "ScheduleAnyway"),
      },
      {
        labelSelector: selector,
        minDomains: integer(1, INT32_MAX),
        nodeAffinityPolicy: oneOf("Honor", "Ignore"),
        nodeTaintsPolicy: oneOf("Honor", "Ignore"),
        matchLabelKeys: listOf(name),
      },
    ),
  ),
  workload: name,
  revision: name,
  claimNodes: listOf(name),
  runtimeClass: text,
  images: listOf(name),
};
const podNames = { name, namespace: name, containers: listOf(object({}, containerFields)) };
const taint = object(
  { key: name, effect: oneOf("NoSchedule", "PreferNoSchedule", "NoExecute") },
  { value: text },
);

const scenario = object(
  {
    id: name,
    profile: oneOf("most", "least"),
    preemption: flag,
    nodes: listOf(
      object(
        { name, allocatable: quantities },
        {
          labels,
          taints: listOf(taint),
          unschedulable: flag,
          images: mapOf(anything),
          runtimeClasses: listOf(text),
        },
      ),
    ),
    pending: listOf(object(podNames, podFields)),
  },
  { features: listOf(text), existing: listOf(object({ ...podNames, node: name }, podFields)) },
);

/** Parses one line. @throws SchedulerError `invalid_scenario`, with the path of the field. */
export function parseScenario(line: string): Scenario {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new SchedulerError("invalid_scenario", `not JSON: ${String(error)}`);
  }
  scenario(knownFields(value), "");
  const parsed = withoutNulls(value) as Scenario;
  const complete = {
    ...parsed,
    nodes: parsed.nodes.map((node) => ({ ...node, labels: node.labels ?? {} })),
    existing: parsed.existing ?? [],
  };
  checkNames(complete);
  return complete;
}

/** Checks the fields. A scenario may have extra fields for its author's notes, but nodes and pods may not. */
function knownFields(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const known = ["id", "profile", "preemption", "nodes", "pending", "features", "existing"];
  return Object.fromEntries(Object.entries(value).filter(([field]) => known.includes(field)));
}

function checkNames({ nodes, existing, pending }: Scenario): void {
  const nodeNames = new Set<string>();
  for (const [index, node] of nodes.entries()) {
    if (nodeNames.has(node.name)) fail(`nodes[${index}].name`, `${node.name} appears twice`);
    nodeNames.add(node.name);
  }
  for (const [index, pod] of existing.entries()) {
    if (!nodeNames.has(pod.node)) fail(`existing[${index}].node`, `no node ${pod.node}`);
  }
  const keys = new Set<string>();
  for (const [list, pods] of [
    ["existing", existing],
    ["pending", pending],
  ] as const) {
    for (const [index, pod] of pods.entries()) {
      if (keys.has(podKey(pod))) fail(`${list}[${index}].name`, `${podKey(pod)} appears twice`);
      keys.add(podKey(pod));
    }
  }
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, entry]) => entry !== null);
  return Object.fromEntries(entries.map(([key, entry]) => [key, withoutNulls(entry)]));
}
