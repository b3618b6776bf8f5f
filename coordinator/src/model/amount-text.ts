import type { ResourceList } from "@forage/proto/forest/v1/forage";

/** The amount of a resource as it is written; empty: it isn't named. */
export function amountText(list: ResourceList | undefined, resource: string): string {
  if (list === undefined) return "";
  if (resource === "cpu") return list.cpu;
  if (resource === "memory") return list.memory;
  if (resource === "ephemeral-storage") return list.ephemeralStorage;
  return Object.hasOwn(list.extended, resource) ? (list.extended[resource] ?? "") : "";
}
