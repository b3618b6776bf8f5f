import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { PodRecord, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
import type { ContainerSpec, PodSpec } from "@forage/scheduler";
import { hashMessage } from "./hash.ts";
import type { Labels } from "./labels.ts";

/** A workload as its reconciler sees it. */
export interface Workload {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly replicas: number;
  readonly template: PodTemplate;
  /** Pods with this hash are of the present revision. Labels of a request are not part of it: relabelling restarts nothing. */
  readonly templateHash: string;
  /** For every pod: the request's labels, then those of the pod template. */
  readonly labels: Labels;
}

/** A service that says nothing of scaling wants one replica; one that says 0 wants none. */
export function replicasOf(spec: ContainerServiceSpec): number {
  return spec.scaling === undefined ? 1 : spec.scaling.replicas;
}

/** Undefined when the resource isn't a workload. */
export function workloadOf(record: ResourceRecord): Workload | undefined {
  const spec = record.resource?.spec;
  if (spec?.$case !== "containerService") return undefined;
  const { container, sidecars, initContainers, volumes, podConfig } = spec.value;
  const template: PodTemplate = {
    container,
    sidecars,
    initContainers,
    volumes,
    podConfig,
    objectVersions: {},
  };
  return {
    namespace: record.namespace,
    kind: record.kind,
    name: record.name,
    replicas: replicasOf(spec.value),
    template,
    templateHash: hashMessage(PodTemplate, template),
    labels: { ...record.labels, ...podConfig?.labels },
  };
}

/** The pod in the scheduler's terms. */
export function podSpecOf(record: PodRecord): PodSpec {
  const { container, sidecars = [] } = record.template ?? {};
  const containers = [container, ...sidecars].filter((c) => c !== undefined);
  return {
    name: record.name,
    namespace: record.namespace,
    labels: record.labels,
    containers: containers.map(
      ({ resources }): ContainerSpec => ({
        requests: resourceList(resources?.requests),
        limits: resourceList(resources?.limits),
      }),
    ),
    workload: workloadKey(record.namespace, record.workloadKind, record.workloadName),
    revision: record.templateHash,
    images: containers.map(({ image }) => image),
  };
}

export function workloadKey(namespace: string, kind: string, name: string): string {
  return `${namespace}/${kind}/${name}`;
}

type WireResources = { cpu: string; memory: string; ephemeralStorage: string; extended: Labels };

function resourceList(wire: WireResources | undefined): Record<string, string> {
  if (wire === undefined) return {};
  const list: Record<string, string> = { ...wire.extended };
  if (wire.cpu !== "") list.cpu = wire.cpu;
  if (wire.memory !== "") list.memory = wire.memory;
  if (wire.ephemeralStorage !== "") list["ephemeral-storage"] = wire.ephemeralStorage;
  return list;
}
