import type { Container, ForageResource, PodConfig, Volume } from "@forage/proto/forest/v1/forage";
import type { Field } from "../validate/field.ts";

/** The fields of a workload's spec that make a pod. */
export interface PodSpecFields {
  readonly container?: Container | undefined;
  readonly sidecars?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly podConfig?: PodConfig | undefined;
}

export interface PlacedPod {
  readonly pod: PodSpecFields;
  /** The field of the workload's spec in the request. */
  readonly field: Field;
}

export interface PlacedContainer {
  readonly container: Container;
  readonly field: Field;
}

/** Returns the fields of the resource's spec that make its pods. Undefined: it has no pods. Pure. */
export function podOf({ spec }: ForageResource, field: Field): PlacedPod | undefined {
  switch (spec?.$case) {
    case "containerService":
      return { pod: spec.value, field: field.at("container_service") };
    case "job":
      return { pod: spec.value, field: field.at("job") };
    case "cronJob":
      return { pod: spec.value, field: field.at("cron_job") };
    default:
      return undefined;
  }
}

export function containersOf({ pod, field }: PlacedPod): PlacedContainer[] {
  const { container, sidecars = [], initContainers = [] } = pod;
  const placed = (name: string) => (it: Container, index: number) => {
    return { container: it, field: field.at(name).item(index) };
  };
  return [
    ...(container === undefined ? [] : [{ container, field: field.at("container") }]),
    ...sidecars.map(placed("sidecars")),
    ...initContainers.map(placed("init_containers")),
  ];
}
