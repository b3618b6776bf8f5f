import type { ResourceList } from "@forage/proto/forest/v1/forage";

/** Returns the amount of a resource as it was written. Empty: the list doesn't contain it. */
export function amountText(list: ResourceList | undefined, resource: string): string {
  if (list === undefined) return "";
  if (resource === "cpu") return list.cpu;
  if (resource === "memory") return list.memory;
  if (resource === "ephemeral-storage") return list.ephemeralStorage;
  return Object.hasOwn(list.extended, resource) ? (list.extended[resource] ?? "") : "";
}
