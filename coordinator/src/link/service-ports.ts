import type { ContainerPort } from "@forage/proto/forest/v1/forage";
import { undeclaredPorts } from "../model/service-ports.ts";
import type { PodEntry, ResourceEntry } from "../state/entries.ts";
import type { State } from "../state/state.ts";

/** Returns the ports of a pod that services lead to and none of its containers declares. */
export function servicePortsOf(state: State, { record, workloadKey }: PodEntry): ContainerPort[] {
  return undeclaredPorts(record.template, state.servicesTargeting(workloadKey).flatMap(specOf));
}

function specOf({ record }: ResourceEntry) {
  const spec = record.resource?.spec;
  return spec?.$case === "service" && !record.deleting ? [spec.value] : [];
}
