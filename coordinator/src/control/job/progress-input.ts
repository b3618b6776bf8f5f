import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import { type Job, jobOf } from "../../model/job.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { jobStatusOf } from "./job-input.ts";

export interface JobProgressInput {
  readonly job: Job;
  /** The status of this run or an earlier one. */
  readonly status: JobStatus | undefined;
  /** The unmet dependencies. Empty if there are none. */
  readonly waitsFor: string;
}

/** Undefined when the resource isn't a job. */
export function jobProgressInput(
  resource: ResourceEntry | undefined,
  state: ClusterView,
): JobProgressInput | undefined {
  if (resource === undefined) return undefined;
  const { namespace, name } = resource.record;
  const status = jobStatusOf(state, namespace, name);
  const job = jobOf(resource.record, status?.run);
  return job && { job, status, waitsFor: "" };
}
