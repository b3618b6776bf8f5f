import { type ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { hashLabels, hashMessage } from "../../model/hash.ts";
import { type ResourceKind, resourceKey } from "../../model/keys.ts";
import { hasLabels } from "../../model/labels.ts";
import type { ResourceEntry } from "../../state/entries.ts";

/** One resource of a request, with the action to take. */
export interface BundleItem {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly action: "create" | "update" | "unchanged" | "remove";
  readonly specHash: string;
  /** The requested resource. Undefined for a removal. */
  readonly resource: ForageResource | undefined;
  readonly existing: ResourceEntry | undefined;
}

export interface BundleChoices {
  /** Reports whether a resource with unchanged content needs a new rollout attempt. */
  readonly needsRetry?: (entry: ResourceEntry) => boolean;
  /** Whether resources with the request's labels that are not part of the request are kept. */
  readonly keepOthers?: boolean;
}

/** Returns the request's changes to the stored resources, in the request's order, with removals last. Pure. */
export function planBundle(
  request: ApplyResourcesRequest,
  stored: readonly ResourceEntry[],
  { needsRetry = () => false, keepOthers = false }: BundleChoices = {},
): BundleItem[] {
  const byKey = new Map(stored.map((entry) => [entry.key, entry]));
  const items = request.resources.map((resource): BundleItem => {
    const kind = kindOf(resource);
    const key = resourceKey(request.namespace, kind, resource.name);
    const existing = byKey.get(key);
    const specHash = hashMessage(ForageResource, resource, hashLabels(request.labels));
    const same = existing !== undefined && !existing.record.deleting && existing.record.specHash === specHash;
    const unchanged = same && !needsRetry(existing);
    const action = existing === undefined ? "create" : unchanged ? "unchanged" : "update";
    return { key, kind, name: resource.name, action, specHash, resource, existing };
  });
  const named = new Set(items.map((item) => item.key));
  if (keepOthers || Object.keys(request.labels).length === 0) return items;
  for (const entry of stored) {
    // Runs of a cron job have its labels, and are removed together with it.
    if (entry.record.owner !== undefined) continue;
    if (named.has(entry.key) || !hasLabels(entry.record.labels, request.labels)) continue;
    const { kind, name, specHash } = entry.record;
    items.push({
      key: entry.key,
      kind,
      name,
      action: "remove",
      specHash,
      resource: undefined,
      existing: entry,
    });
  }
  return items;
}

/** Returns the kind of the resource, which is the field that is set in ForageResource.spec. */
export function kindOf(resource: ForageResource): ResourceKind {
  switch (resource.spec?.$case) {
    case "containerService":
      return "container_service";
    case "cronJob":
      return "cron_job";
    case "service":
    case "route":
    case "job":
      return resource.spec.$case;
    default:
      throw new TypeError("a resource without a spec passed validation");
  }
}
