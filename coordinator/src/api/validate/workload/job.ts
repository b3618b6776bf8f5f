import type { Container, JobConfig, JobSpec, PodConfig, Volume } from "@forage/proto/forest/v1/forage";
import { METRICS_ANNOTATIONS } from "../../../model/autoscaling.ts";
import { MAX_COMPLETIONS } from "../../../model/job.ts";
import { JOB_ANNOTATIONS } from "../../../model/job-annotations.ts";
import type { Field } from "../field.ts";
import { checkOwnAnnotations } from "../pod/own-annotations.ts";
import { validatePod } from "../pod/pod.ts";
import { countProblem, rangeProblem, secondsProblem } from "../syntax/numbers.ts";
import { choiceProblem } from "../syntax/text.ts";
import { refuseMetricsAnnotations } from "./autoscaling.ts";

export function validateJob(spec: JobSpec, field: Field): void {
  validateRun(spec, field);
}

/** Validates the common part of jobs and cron jobs: the pod and how often it runs. */
export function validateRun(
  spec: {
    readonly container: Container | undefined;
    readonly volumes: readonly Volume[];
    readonly jobConfig: JobConfig | undefined;
    readonly podConfig: PodConfig | undefined;
  },
  field: Field,
): void {
  validatePod(spec, field);
  if (spec.jobConfig !== undefined) validateJobConfig(spec.jobConfig, field.at("job_config"));
  checkRestartPolicies(spec, field);
  checkBackoffAnnotation(spec, field);
  const annotations = field.at("pod_config").at("annotations");
  refuseMetricsAnnotations(spec.podConfig, annotations);
  const refused = Object.values(METRICS_ANNOTATIONS);
  checkOwnAnnotations(spec.podConfig?.annotations ?? {}, "job", annotations, refused);
}

/** Validates the annotation for the number of retries, which can express 0, unlike the API field. */
function checkBackoffAnnotation(
  spec: { readonly jobConfig: JobConfig | undefined; readonly podConfig: PodConfig | undefined },
  field: Field,
): void {
  const text = spec.podConfig?.annotations[JOB_ANNOTATIONS.backoffLimit];
  if (text === undefined) return;
  const at = field.at("pod_config").at("annotations").key(JOB_ANNOTATIONS.backoffLimit);
  if (!/^\d{1,9}$/.test(text)) at.invalid("must be a number of tolerated failures");
  else if ((spec.jobConfig?.backoffLimit ?? 0) > 0)
    at.invalid("must be left out where job_config.backoff_limit is set");
}

function validateJobConfig(config: JobConfig, field: Field): void {
  field.at("completions").check(rangeProblem(config.completions, 0, MAX_COMPLETIONS));
  field.at("parallelism").check(rangeProblem(config.parallelism, 0, MAX_COMPLETIONS));
  field.at("completion_mode").check(choiceProblem(config.completionMode, ["NonIndexed", "Indexed"]));
  if (config.completionMode === "Indexed" && config.completions === 0)
    field.at("completions").invalid("must be set when the completion mode is Indexed");
  field.at("backoff_limit").check(countProblem(config.backoffLimit));
  field.at("active_deadline_seconds").check(secondsProblem(config.activeDeadlineSeconds));
  field.at("ttl_seconds_after_finished").check(secondsProblem(config.ttlSecondsAfterFinished));
  field.at("restart_policy").check(choiceProblem(config.restartPolicy, ["OnFailure", "Never"]));
}

function checkRestartPolicies(
  spec: { readonly jobConfig: JobConfig | undefined; readonly podConfig: PodConfig | undefined },
  field: Field,
): void {
  const ofPod = spec.podConfig?.restartPolicy ?? "";
  const ofJob = spec.jobConfig?.restartPolicy ?? "";
  const at = field.at("pod_config").at("restart_policy");
  if (ofPod === "Always") at.invalid("must be OnFailure or Never, because a job's pods have to end");
  else if (ofPod !== "" && ofJob !== "" && ofPod !== ofJob)
    at.invalid("must be the same as job_config.restart_policy, or left out");
}
