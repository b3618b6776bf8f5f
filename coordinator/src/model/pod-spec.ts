import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import type * as wire from "@forage/proto/forest/v1/forage";
import type {
  ContainerSpec,
  HostPort,
  InitContainerSpec,
  NodeAffinity,
  NodeSelectorTerm,
  PodSpec,
} from "@forage/scheduler";
import type { Labels } from "./labels.ts";
import { affinityOf, spreadOf, tolerationsOf } from "./pod-rules.ts";
import { workloadKey } from "./workload.ts";

/**
 * Converts a pod for the scheduler. `claimNodes` are the nodes that hold the data of its claims. `not` are nodes that pods
 * of its workload are about to leave.
 */
export function podSpecOf(
  record: PodRecord,
  claimNodes: readonly string[] = [],
  not: readonly string[] = [],
): PodSpec {
  const spec = specOf(record, claimNodes);
  return not.length === 0 ? spec : { ...spec, nodeAffinity: exceptOn(not, spec.nodeAffinity) };
}

function exceptOn(nodes: readonly string[], affinity: NodeAffinity | undefined): NodeAffinity {
  const elsewhere = [...new Set(nodes)].map((name) => {
    return { key: "metadata.name", operator: "NotIn", values: [name] } as const;
  });
  if (affinity?.required === undefined) return { ...affinity, required: [{ matchFields: elsewhere }] };
  // An empty term matches nothing, as in Kubernetes.
  const saysNothing = ({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): boolean =>
    matchExpressions.length + matchFields.length === 0;
  const required = affinity.required.map((term) =>
    saysNothing(term) ? term : { ...term, matchFields: [...(term.matchFields ?? []), ...elsewhere] },
  );
  return { ...affinity, required };
}

function specOf(record: PodRecord, claimNodes: readonly string[]): PodSpec {
  const { container, sidecars = [], initContainers = [], podConfig } = record.template ?? {};
  const containers = [container, ...sidecars].filter((c) => c !== undefined);
  const hostNetwork = podConfig?.hostNetwork ?? false;
  return {
    name: record.name,
    namespace: record.namespace,
    labels: record.labels,
    containers: containers.map((c): ContainerSpec => {
      return { ...amountsOf(c), ...(hostNetwork && { hostPorts: hostPortsOf(c) }) };
    }),
    ...(initContainers.length > 0 && { initContainers: initContainers.map(amountsOf) }),
    workload: workloadKey(record.namespace, record.workloadKind, record.workloadName),
    revision: record.templateHash,
    images: [...new Set([...containers, ...initContainers].map(({ image }) => image))],
    ...(record.priority !== 0 && { priority: record.priority }),
    ...(record.neverPreempts && { preemptionPolicy: "Never" as const }),
    ...(claimNodes.length > 0 && { claimNodes }),
    ...(podConfig !== undefined && rulesOf(podConfig)),
  };
}

function rulesOf(config: wire.PodConfig): Partial<PodSpec> {
  const { nodeSelector, tolerations, affinity, topologySpreadConstraints, runtimeClassName } = config;
  return {
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
    ...(tolerations.length > 0 && { tolerations: tolerationsOf(tolerations) }),
    ...(affinity !== undefined && affinityOf(affinity)),
    ...(topologySpreadConstraints.length > 0 && { topologySpread: spreadOf(topologySpreadConstraints) }),
    ...(runtimeClassName !== "" && { runtimeClass: runtimeClassName }),
  };
}

function amountsOf({ resources }: wire.Container): InitContainerSpec {
  return { requests: resourceList(resources?.requests), limits: resourceList(resources?.limits) };
}

/** Returns the host ports that a container uses in the host's network. */
function hostPortsOf({ ports }: wire.Container): HostPort[] {
  return ports.map(({ containerPort, protocol }) => ({ port: containerPort, protocol }));
}

interface WireResources {
  cpu: string;
  memory: string;
  ephemeralStorage: string;
  extended: Labels;
}

function resourceList(list: WireResources | undefined): Record<string, string> {
  if (list === undefined) return {};
  const amounts: Record<string, string> = { ...list.extended };
  if (list.cpu !== "") amounts.cpu = list.cpu;
  if (list.memory !== "") amounts.memory = list.memory;
  if (list.ephemeralStorage !== "") amounts["ephemeral-storage"] = list.ephemeralStorage;
  return amounts;
}
