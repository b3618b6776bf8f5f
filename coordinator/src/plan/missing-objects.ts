import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { Volume } from "@forage/proto/forest/v1/forage";
import { type ObjectName, titleOf } from "../model/object-name.ts";
import { refsOf } from "../model/pod-refs.ts";
import { certificateRefsOf } from "../model/route-refs.ts";

/**
 * Returns a note with the consequence for each missing object to which the resource's pods or TLS
 * settings refer.
 */
export function missingObjectNotes(
  record: ResourceRecord,
  exists: (name: ObjectName) => boolean,
): readonly string[] {
  const isMissing = (ref: ObjectName): boolean => ref.kind !== "priority_class" && !exists(ref);
  const pods = podRefsOf(record).filter(isMissing);
  const certificates = certificateRefsOf(record).filter(isMissing);
  return [
    ...pods.map(
      (ref) => `${titleOf(ref)} does not exist in namespace ${ref.namespace}: pods wait until it is created`,
    ),
    ...certificates.map(
      (ref) =>
        `${titleOf(ref)} does not exist in namespace ${ref.namespace}: no TLS is served until it is created`,
    ),
  ];
}

function podRefsOf({ namespace, resource }: ResourceRecord): readonly ObjectName[] {
  const spec = resource?.spec;
  if (spec?.$case !== "containerService" && spec?.$case !== "job" && spec?.$case !== "cronJob") return [];
  const { container, podConfig } = spec.value;
  const volumes = spec.value.volumes.filter((volume) => !isOptional(volume));
  const others =
    spec.$case === "containerService"
      ? { sidecars: spec.value.sidecars, initContainers: spec.value.initContainers }
      : {};
  return refsOf(namespace, { ...PodTemplate.fromPartial({}), ...others, container, volumes, podConfig });
}

/** Reports whether pods start without the object of the volume. */
function isOptional({ source }: Volume): boolean {
  return (source?.$case === "secret" || source?.$case === "configMap") && source.value.optional;
}
