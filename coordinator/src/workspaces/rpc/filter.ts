import type { MetadataFilter } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";

/**
 * Reports whether the instance has the owner, meta id and annotations in the filter. An absent
 * filter matches all instances.
 */
export function matchesFilter({ metadata }: InstanceRecord, filter: MetadataFilter | undefined): boolean {
  if (filter === undefined) return true;
  const { owner, metaId, annotations } = filter;
  if (owner !== "" && metadata?.owner !== owner) return false;
  if (metaId !== "" && metadata?.metaId !== metaId) return false;
  return Object.entries(annotations).every(([key, value]) => metadata?.annotations[key] === value);
}
