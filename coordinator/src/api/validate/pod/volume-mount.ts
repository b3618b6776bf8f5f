import type { VolumeMount } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { mountPathProblem, normalPath, relativePathProblem } from "../syntax/paths.ts";

export function validateMount({ name, mountPath, subPath }: VolumeMount, field: Field): void {
  field.at("name").check(dnsLabelProblem(name));
  field.at("mount_path").check(mountPathProblem(mountPath));
  if (subPath !== "") field.at("sub_path").check(relativePathProblem(subPath));
}

/** Validates the mounts of one container. Each must refer to a volume of the pod, and have a path of its own. */
export function checkMounts(
  mounts: readonly VolumeMount[],
  volumes: ReadonlySet<string>,
  field: Field,
): void {
  const paths = new Set<string>();
  for (const [index, { name, mountPath }] of mounts.entries()) {
    const at = field.item(index);
    if (name !== "" && !volumes.has(name)) at.at("name").invalid("is not the name of a volume of this pod");
    const path = normalPath(mountPath);
    if (mountPath !== "" && paths.has(path)) at.at("mount_path").invalid("is the path of another mount");
    paths.add(path);
  }
}
