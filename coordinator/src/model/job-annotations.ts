/** Annotations of pod_config for settings without a field in the API. */
export const JOB_ANNOTATIONS = {
  /** Dependencies such as "web, job/migrate": no pods are created before these are ready or complete. */
  dependsOn: "forage.dev/depends-on",
  /** The back-off limit. "0": failures are not retried. */
  backoffLimit: "forage.dev/backoff-limit",
} as const;
