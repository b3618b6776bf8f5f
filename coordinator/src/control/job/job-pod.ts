import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { type Container, EnvVar } from "@forage/proto/forest/v1/forage";
import { hashMessage } from "../../model/hash.ts";
import type { Job } from "../../model/job.ts";
import type { Labels } from "../../model/labels.ts";
import type { Priority } from "../../model/priority.ts";
import type { NewPod } from "../pod-pieces.ts";

/** Kubernetes' names. */
const indexVariable = "JOB_COMPLETION_INDEX";
const indexKey = "batch.kubernetes.io/job-completion-index";
const nameKey = "batch.kubernetes.io/job-name";

/** Pods' names are DNS labels. */
const maxNameLength = 63;

export interface JobPodNames {
  readonly uid: string;
  /** Sets it apart from the other pods of the job. */
  readonly suffix: string;
}

/** Pure: a pod of the job, with its number if the job is Indexed. */
export function podOfJob(
  job: Job,
  index: number | undefined,
  { uid, suffix }: JobPodNames,
  priority: Priority | undefined,
): NewPod {
  const template = index === undefined ? job.template : indexed(job.template, index);
  const number = index === undefined ? "" : `-${index}`;
  return {
    namespace: job.namespace,
    workloadKind: "job",
    workloadName: job.name,
    name: named(job.name, `${number}-${suffix}`),
    uid,
    labels: labelsOf(job, index),
    template,
    templateHash: hashMessage(PodTemplate, template),
    priority,
    job: { run: job.run, index, counted: "" },
    hostname: index === undefined ? "" : named(job.name, number),
  };
}

/** Of a pod of the job. */
export function labelsOf(job: Job, index: number | undefined): Labels {
  const labels = { ...job.labels, [nameKey]: job.name };
  return index === undefined ? labels : { ...labels, [indexKey]: String(index) };
}

function named(name: string, suffix: string): string {
  return name.slice(0, maxNameLength - suffix.length).replace(/-+$/, "") + suffix;
}

function indexed(template: PodTemplate, index: number): PodTemplate {
  const withIndex = (container: Container): Container => {
    if (container.env.some(({ name }) => name === indexVariable)) return container;
    const variable = EnvVar.fromPartial({
      name: indexVariable,
      valueSource: { $case: "value", value: String(index) },
    });
    return { ...container, env: [variable, ...container.env] };
  };
  const { podConfig, container } = template;
  return {
    ...template,
    container: container && withIndex(container),
    podConfig: podConfig && {
      ...podConfig,
      annotations: { ...podConfig.annotations, [indexKey]: String(index) },
    },
  };
}
