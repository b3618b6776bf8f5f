import { milliCpuOf, wholeUnitsOf } from "@forage/scheduler";
import type { PodContainer } from "../pod.ts";

const FIELD = /^(requests|limits)\.(cpu|memory|ephemeral-storage)$/;
const MILLI = 1000;

/**
 * What a `resource_field_ref` says, with Kubernetes' divisor of 1: whole cores, rounded up, or bytes. A request that isn't set is 0,
 * a limit that isn't set is what the node has to give. Undefined: there is no such field.
 */
export function resourceField(
  path: string,
  { resources }: Pick<PodContainer, "resources">,
  allocatable: Readonly<Record<string, string>>,
): string | undefined {
  const [, list, resource = ""] = FIELD.exec(path) ?? [];
  if (list === undefined) return undefined;
  const text = resources?.[path] ?? (list === "limits" ? allocatable[resource] : undefined) ?? "0";
  return String(resource === "cpu" ? Math.ceil(milliCpuOf(text) / MILLI) : wholeUnitsOf(text));
}

export function isResourceField(path: string): boolean {
  return FIELD.test(path);
}
