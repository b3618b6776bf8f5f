import { milliCpuOf, wholeUnitsOf } from "@forage/scheduler";
import type { PodContainer } from "../pod.ts";

const FIELD = /^(requests|limits)\.(cpu|memory|ephemeral-storage)$/;
const MILLI = 1000;

/**
 * Returns the value of a `resource_field_ref` with divisor 1, as in Kubernetes: whole cores, rounded up, or bytes. An
 * unset request is 0, and an unset limit is the node's allocatable amount. Returns undefined for an unknown field.
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
