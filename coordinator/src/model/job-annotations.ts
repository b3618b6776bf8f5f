/** Annotations of pod_config for settings that the contract has no field for. */
export const JOB_ANNOTATIONS = {
  /** "web, job/migrate": no pods are made before these are healthy or complete. */
  dependsOn: "forage.dev/depends-on",
  /** "0": a job that is not tried again. */
  backoffLimit: "forage.dev/backoff-limit",
} as const;
