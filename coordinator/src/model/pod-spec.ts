import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
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

/** The parts of a specification that depend on the template alone. */
type TemplateSpec = Pick<PodSpec, "containers" | "initContainers" | "images"> & Partial<PodSpec>;

/** Converts pods for the scheduler. Pods that share a template share the parts that depend on it alone. */
export class PodSpecs {
  readonly #templates = new WeakMap<PodTemplate, TemplateSpec>();

  /** Parameters as in `podSpecOf`. */
  of(record: PodRecord, claimNodes: readonly string[] = [], not: readonly string[] = []): PodSpec {
    const spec = specOf(record, this.#templateSpec(record.template), claimNodes);
    return not.length === 0 ? spec : { ...spec, nodeAffinity: exceptOn(not, spec.nodeAffinity) };
  }

  #templateSpec(template: PodTemplate | undefined): TemplateSpec {
    if (template === undefined) return templateSpecOf(template);
    let spec = this.#templates.get(template);
    if (spec === undefined) {
      spec = templateSpecOf(template);
      this.#templates.set(template, spec);
    }
    return spec;
  }
}

/**
 * Converts a pod for the scheduler. `claimNodes` are the nodes that hold the data of its claims. `not` are nodes that pods
 * of its workload are about to leave.
 */
export function podSpecOf(
  record: PodRecord,
  claimNodes: readonly string[] = [],
  not: readonly string[] = [],
): PodSpec {
  return new PodSpecs().of(record, claimNodes, not);
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

function specOf(record: PodRecord, template: TemplateSpec, claimNodes: readonly string[]): PodSpec {
  return {
    name: record.name,
    namespace: record.namespace,
    labels: record.labels,
    workload: workloadKey(record.namespace, record.workloadKind, record.workloadName),
    revision: record.templateHash,
    ...(record.priority !== 0 && { priority: record.priority }),
    ...(record.neverPreempts && { preemptionPolicy: "Never" as const }),
    ...(claimNodes.length > 0 && { claimNodes }),
    ...template,
  };
}

function templateSpecOf(template: PodTemplate | undefined): TemplateSpec {
  const { container, sidecars = [], initContainers = [], podConfig } = template ?? {};
  const containers = [container, ...sidecars].filter((c) => c !== undefined);
  const hostNetwork = podConfig?.hostNetwork ?? false;
  return {
    containers: containers.map((c): ContainerSpec => {
      return { ...amountsOf(c), ...(hostNetwork && { hostPorts: hostPortsOf(c) }) };
    }),
    ...(initContainers.length > 0 && { initContainers: initContainers.map(amountsOf) }),
    images: [...new Set([...containers, ...initContainers].map(({ image }) => image))],
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
