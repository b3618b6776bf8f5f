import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { type Job, jobOf } from "../model/job.ts";

interface Known {
  readonly begun: string;
  readonly job: Job | undefined;
}

/** Derives jobs from records, each once, because the hash of a job's template is needed in each evaluation. */
export class KnownJobs {
  readonly #known = new WeakMap<ResourceRecord, Known>();

  /** Parameters as in `jobOf`. The record must not be changed afterwards. */
  of(record: ResourceRecord, begun = ""): Job | undefined {
    const known = this.#known.get(record);
    if (known?.begun === begun) return known.job;
    const job = jobOf(record, begun);
    this.#known.set(record, { begun, job });
    return job;
  }
}
