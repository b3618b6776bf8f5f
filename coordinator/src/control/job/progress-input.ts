import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import type { Job } from "../../model/job.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { jobStatusOf } from "./job-input.ts";

export interface JobProgressInput {
  readonly job: Job;
  /** The job's status. It may be of an earlier run. */
  readonly status: JobStatus | undefined;
  /** The unmet dependencies, for messages. Empty: none. */
  readonly waitsFor: string;
}

/** Returns the job's part of the input for its progress. Undefined if the resource isn't a job. */
export function jobProgressInput(
  resource: ResourceEntry | undefined,
  state: ClusterView,
): JobProgressInput | undefined {
  if (resource === undefined) return undefined;
  const { namespace, name } = resource.record;
  const status = jobStatusOf(state, namespace, name);
  const job = state.jobs.of(resource.record, status?.run);
  return job && { job, status, waitsFor: "" };
}
