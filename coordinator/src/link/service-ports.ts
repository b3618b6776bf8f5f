import type { ContainerPort } from "@forage/proto/forest/v1/forage";
import { undeclaredPorts } from "../model/service-ports.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry, ResourceEntry } from "../state/entries.ts";

/** Returns the target ports of services at a pod that none of its containers declares. */
export function servicePortsOf(state: ClusterView, { record, workloadKey }: PodEntry): ContainerPort[] {
  return undeclaredPorts(record.template, state.servicesTargeting(workloadKey).flatMap(specOf));
}

function specOf({ record }: ResourceEntry) {
  const spec = record.resource?.spec;
  return spec?.$case === "service" && !record.deleting ? [spec.value] : [];
}
