import { metricsAnnotations } from "../../../model/autoscaling.ts";
import { jobAnnotations } from "../../../model/job-annotations.ts";
import { restartOnChange } from "../../../model/pod-refs.ts";
import { restartedAtAnnotation, rolloutAnnotations } from "../../../model/rollout-settings.ts";
import type { Field } from "../field.ts";

/** The owner of the pods: a service runs them for ever, a job to their end. */
export type PodOwner = "service" | "job";

/** Keys below this prefix are ours; one that nothing acts on is a mistake. */
const prefix = "forage.dev/";
const all = ["forage.dev/log-streams", restartOnChange, jobAnnotations.dependsOn];
const known: Readonly<Record<PodOwner, readonly string[]>> = {
  service: [
    ...all,
    ...Object.values(rolloutAnnotations),
    ...Object.values(metricsAnnotations),
    restartedAtAnnotation,
  ],
  job: [...all, jobAnnotations.backoffLimit],
};

/** `elsewhere` are keys that another check has its own words for. */
export function checkOwnAnnotations(
  annotations: Readonly<Record<string, string>>,
  owner: PodOwner,
  field: Field,
  elsewhere: readonly string[] = [],
): void {
  const other: PodOwner = owner === "job" ? "service" : "job";
  for (const key of Object.keys(annotations)) {
    if (!key.startsWith(prefix) || known[owner].includes(key) || elsewhere.includes(key)) continue;
    field
      .key(key)
      .invalid(
        known[other].includes(key)
          ? `is for ${other === "job" ? "jobs and cron jobs" : "container services"} only`
          : `is not known; those that are: ${known[owner].join(", ")}`,
      );
  }
}
