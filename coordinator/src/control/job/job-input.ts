import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import type { TimeReading } from "../../acting-time/acting-time.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { JobInput } from "./plan.ts";

export interface JobViewOptions {
  readonly state: ClusterView;
  /** Reports whether the resource has unmet dependencies. */
  readonly held: (resource: ResourceEntry) => boolean;
}

/**
 * Returns the input for planning a job with the key `namespace/job/name`. To simulate an apply, replace `resource` in the
 * result, and the job by the `jobOf` of its record.
 */
export function jobInput(key: string, moment: TimeReading, { state, held }: JobViewOptions): JobInput {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const resource = state.resource(resourceKey(namespace, kind, name));
  const status = jobStatusOf(state, namespace, name);
  return {
    resource,
    job: resource && state.jobs.of(resource.record, status?.run),
    status,
    pods: state.podsOfWorkload(key),
    nodeExists: (node) => state.node(node) !== undefined,
    nodeReady: (node) => state.node(node)?.health.ready ?? false,
    held: resource !== undefined && held(resource),
    ...moment,
  };
}

/** Returns the job's status. It may be of an earlier run. */
export function jobStatusOf(state: ClusterView, namespace: string, name: string): JobStatus | undefined {
  const status = state.workloadStatuses.get(workloadStatusKey(namespace, "job", name))?.record.status;
  return status?.$case === "job" ? status.value : undefined;
}
