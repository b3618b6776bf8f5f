import { hasDependencies } from "../../model/depends-on.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { type UnmetDependency, waitsFor } from "./waits-for.ts";

/** Returns a function that reports whether unmet dependencies keep a resource from creating pods. */
export function isBlocked(state: ClusterView): (resource: ResourceEntry) => boolean {
  return ({ record }) => {
    const key = workloadStatusKey(record.namespace, record.kind, record.name);
    return hasDependencies(record, state.workloadStatuses.get(key)?.record);
  };
}

/**
 * Returns the dependencies that block a resource. Empty: none. Once all were met for a generation, they are not checked
 * again.
 */
export function blockers(resource: ResourceEntry, state: ClusterView): UnmetDependency[] {
  return resource.record.kind !== "cron_job" && isBlocked(state)(resource) ? waitsFor(resource, state) : [];
}
