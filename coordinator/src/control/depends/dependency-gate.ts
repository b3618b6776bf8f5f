import { hasDependencies } from "../../model/depends-on.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { type Waiting, waitsFor } from "./waits-for.ts";

/** Reports whether a resource makes no pods because of something that it depends on. */
export function isBlocked(state: ClusterView): (resource: ResourceEntry) => boolean {
  return ({ record }) => {
    const key = workloadStatusKey(record.namespace, record.kind, record.name);
    return hasDependencies(record, state.workloadStatuses.get(key)?.record);
  };
}

/**
 * Returns the dependencies that block a resource. Empty if there are none. After all of them were met once, they are not checked
 * again.
 */
export function blockers(resource: ResourceEntry, state: ClusterView): Waiting[] {
  return resource.record.kind !== "cron_job" && isBlocked(state)(resource) ? waitsFor(resource, state) : [];
}
