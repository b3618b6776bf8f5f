import { METRICS_ANNOTATIONS } from "../../../model/autoscaling.ts";
import { JOB_ANNOTATIONS } from "../../../model/job-annotations.ts";
import { RESTART_ON_CHANGE } from "../../../model/pod-refs.ts";
import { RESTARTED_AT_ANNOTATION, ROLLOUT_ANNOTATIONS } from "../../../model/rollout-settings.ts";
import type { Field } from "../field.ts";

/** The owner of the pods: a service, whose pods run until they are stopped, or a job, whose pods end. */
export type PodOwner = "service" | "job";

/** The prefix of Forage's annotations. An unknown annotation with it is an error. */
const PREFIX = "forage.dev/";
const ALL = ["forage.dev/log-streams", RESTART_ON_CHANGE, JOB_ANNOTATIONS.dependsOn];
const known: Readonly<Record<PodOwner, readonly string[]>> = {
  service: [
    ...ALL,
    ...Object.values(ROLLOUT_ANNOTATIONS),
    ...Object.values(METRICS_ANNOTATIONS),
    RESTARTED_AT_ANNOTATION,
  ],
  job: [...ALL, JOB_ANNOTATIONS.backoffLimit],
};

/** Reports unknown or misplaced annotations of Forage. `elsewhere` are keys that another check validates. */
export function checkOwnAnnotations(
  annotations: Readonly<Record<string, string>>,
  owner: PodOwner,
  field: Field,
  elsewhere: readonly string[] = [],
): void {
  const other: PodOwner = owner === "job" ? "service" : "job";
  for (const key of Object.keys(annotations)) {
    if (!key.startsWith(PREFIX) || known[owner].includes(key) || elsewhere.includes(key)) continue;
    field
      .key(key)
      .invalid(
        known[other].includes(key)
          ? `is for ${other === "job" ? "jobs and cron jobs" : "container services"} only`
          : `is unknown; the known annotations are ${known[owner].join(", ")}`,
      );
  }
}
