import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { ContainerServiceSpec } from "@forage/proto/forest/v1/forage";
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

export function workloadKey(namespace: string, kind: string, name: string): string {
  return `${namespace}/${kind}/${name}`;
}
