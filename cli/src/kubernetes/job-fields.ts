import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import { readTemplate, type Template } from "./pod-fields.ts";
import {
  type Draft,
  lost,
  NO_SCOPE,
  noEffect,
  nonZero,
  type Rules,
  readFields,
  type Scope,
  text,
} from "./rules.ts";

const TEMPLATE = noEffect("read on its own");

/** The rules for all fields of a job. */
export const JOB_FIELDS: Rules = {
  activeDeadlineSeconds: nonZero("no deadline"),
  backoffLimit: (field, into) => {
    if (field.whole() > 0) into.backoff_limit = field.whole();
    else into.noRetries = true;
  },
  backoffLimitPerIndex: lost("has no counterpart: the job has one limit"),
  completionMode: text,
  completions: nonZero("1"),
  managedBy: lost("has no counterpart"),
  manualSelector: noEffect("a job has its own pods only"),
  maxFailedIndexes: lost("has no counterpart"),
  parallelism: nonZero("1"),
  podFailurePolicy: lost("has no counterpart: each failure counts"),
  podReplacementPolicy: lost("has no counterpart: a stopped pod is replaced once it has ended"),
  selector: noEffect("a job has its own pods only"),
  successPolicy: lost("has no counterpart"),
  suspend: lost("has no counterpart: apply the job when it is to run"),
  template: TEMPLATE,
  ttlSecondsAfterFinished: nonZero("that the job stays"),
};

/** The rules for all fields of a cron job. */
export const CRON_JOB_FIELDS: Rules = {
  concurrencyPolicy: text,
  failedJobsHistoryLimit: nonZero("1"),
  jobTemplate: TEMPLATE,
  schedule: text,
  startingDeadlineSeconds: nonZero("no deadline"),
  successfulJobsHistoryLimit: nonZero("3"),
  suspend: (field, into) => {
    into.suspend = field.switch();
  },
  timeZone: (field, into) => {
    into.timezone = field.text();
  },
};

export const JOB_TEMPLATE_FIELDS: Rules = { metadata: TEMPLATE, spec: TEMPLATE };

export function readJob(item: Item, keysOf: Scope["keysOf"]): Draft | undefined {
  return item.spec === undefined ? item.field.fail("has no spec") : jobOf(item.spec, keysOf);
}

export function readCronJob({ field, spec }: Item, keysOf: Scope["keysOf"]): Draft | undefined {
  const template = spec?.get("jobTemplate");
  const job = template?.get("spec");
  if (spec === undefined || template === undefined || job === undefined)
    return field.fail("has no jobTemplate with a spec");
  readFields(template, JOB_TEMPLATE_FIELDS, NO_SCOPE);
  return { ...readFields(spec, CRON_JOB_FIELDS, NO_SCOPE), ...jobOf(job, keysOf) };
}

/** Reads the fields that jobs and cron jobs of a manifest share. */
function jobOf(spec: Field, keysOf: Scope["keysOf"]): Draft | undefined {
  const pods = spec.get("template");
  if (pods === undefined) return spec.fail("has no template");
  const template = readTemplate(pods, keysOf);
  const { noRetries, ...config } = readFields(spec, JOB_FIELDS, NO_SCOPE);
  if (template === undefined) return undefined;
  loseOthers(pods, template);
  const { restart_policy, ...pod } = template.pod;
  const annotations = {
    ...(pod.annotations as object),
    ...(noRetries === true && { "forage.dev/backoff-limit": "0" }),
  };
  return {
    container: template.container,
    ...(template.volumes.length > 0 && { volumes: template.volumes }),
    job_config: { ...config, ...(restart_policy !== undefined && { restart_policy }) },
    pod_config: { ...pod, ...(Object.keys(annotations).length > 0 && { annotations }) },
  };
}

/** Reports further containers, because a job has only one. */
function loseOthers(pods: Field, { sidecars, initContainers }: Template): void {
  const spec = pods.get("spec");
  const reason = "has no counterpart: a job has one container";
  if (initContainers.length > 0) spec?.get("initContainers")?.lose(reason);
  else if (sidecars.length > 0)
    (spec?.get("containers")?.items()[1] ?? spec?.get("initContainers"))?.lose(reason);
}
