import type { JobStatus } from "@forage/proto/forage/store/v1/store";
import { type Job, jobOf } from "../../model/job.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import { jobStatusOf } from "./job-input.ts";

export interface JobProgressInput {
  readonly job: Job;
  /** Of this run or an earlier one. */
  readonly status: JobStatus | undefined;
  /** What it waits for before it begins; empty: nothing. */
  readonly waitsFor: string;
}

/** Undefined when the resource isn't a job. */
export function jobProgressInput(
  resource: ResourceEntry | undefined,
  state: State,
): JobProgressInput | undefined {
  const job = resource && jobOf(resource.record);
  if (job === undefined) return undefined;
  return { job, status: jobStatusOf(state, job.namespace, job.name), waitsFor: "" };
}
