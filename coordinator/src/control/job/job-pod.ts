import { createHash } from "node:crypto";
import { INDEX_KEY } from "../../model/indexed-template.ts";
import type { Job } from "../../model/job.ts";
import type { Labels } from "../../model/labels.ts";
import type { Priority } from "../../model/priority.ts";
import type { NewPod } from "../pod-writes.ts";

/** Kubernetes' label for the name of the job. */
const NAME_KEY = "batch.kubernetes.io/job-name";

/** The limit of a pod's name, which is a DNS label. */
const MAX_NAME_LENGTH = 63;

export interface JobPodNames {
  readonly uid: string;
  /** The random end of the name, which distinguishes the pods of the job. */
  readonly suffix: string;
}

/** Returns a pod of the job, with its index if the job is Indexed. Pure. */
export function podOfJob(
  job: Job,
  index: number | undefined,
  { uid, suffix }: JobPodNames,
  priority: Priority | undefined,
  templateRef: string,
): NewPod {
  const number = index === undefined ? "" : `-${index}`;
  return {
    namespace: job.namespace,
    workloadKind: "job",
    workloadName: job.name,
    name: named(job.name, `${number}-${suffix}`),
    uid,
    labels: labelsOf(job, index),
    templateRef,
    templateHash: index === undefined ? templateRef : indexedHash(templateRef, index),
    priority,
    job: { run: job.run, index, counted: "" },
    hostname: index === undefined ? "" : named(job.name, number),
  };
}

/** Returns the hash of a template with an index. Hashes the reference instead of the template, which may be large. */
function indexedHash(templateRef: string, index: number): string {
  return createHash("sha256").update(`${templateRef} ${index}`).digest("hex");
}

/** Returns the labels of a pod of the job. */
export function labelsOf(job: Job, index: number | undefined): Labels {
  const labels = { ...job.labels, [NAME_KEY]: job.name };
  return index === undefined ? labels : { ...labels, [INDEX_KEY]: String(index) };
}

function named(name: string, suffix: string): string {
  return name.slice(0, MAX_NAME_LENGTH - suffix.length).replace(/-+$/, "") + suffix;
}
