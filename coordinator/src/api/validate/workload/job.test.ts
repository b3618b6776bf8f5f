import { describeSpec } from "../../../../test/support/spec-cases.ts";

describeSpec("job", "job config", [
  [
    "all of it",
    { jobConfig: { completions: 3, parallelism: 2, completionMode: "Indexed", backoffLimit: 0 } },
    [],
  ],
  ["no container", { container: undefined }, ["container"]],
  ["an unknown mode", { jobConfig: { completionMode: "indexed" } }, ["job_config.completion_mode"]],
  ["Indexed without completions", { jobConfig: { completionMode: "Indexed" } }, ["job_config.completions"]],
  ["10,001 completions", { jobConfig: { completions: 10_001 } }, ["job_config.completions"]],
  ["10,001 at once", { jobConfig: { parallelism: 10_001 } }, ["job_config.parallelism"]],
  [
    "a negative deadline",
    { jobConfig: { activeDeadlineSeconds: -1n } },
    ["job_config.active_deadline_seconds"],
  ],
  [
    "a negative time to live",
    { jobConfig: { ttlSecondsAfterFinished: -1n } },
    ["job_config.ttl_seconds_after_finished"],
  ],
  ["too many retries", { jobConfig: { backoffLimit: 2_147_483_648 } }, ["job_config.backoff_limit"]],
  ["no retries, by annotation", { podConfig: { annotations: { "forage.dev/backoff-limit": "0" } } }, []],
  [
    "an annotation that is not a number",
    { podConfig: { annotations: { "forage.dev/backoff-limit": "none" } } },
    ["pod_config.annotations[forage.dev/backoff-limit]"],
  ],
  [
    "two limits",
    { jobConfig: { backoffLimit: 3 }, podConfig: { annotations: { "forage.dev/backoff-limit": "0" } } },
    ["pod_config.annotations[forage.dev/backoff-limit]"],
  ],
  ["restarts always", { jobConfig: { restartPolicy: "Always" } }, ["job_config.restart_policy"]],
  ["a pod that restarts always", { podConfig: { restartPolicy: "Always" } }, ["pod_config.restart_policy"]],
  ["the pod's own policy", { podConfig: { restartPolicy: "Never" } }, []],
  [
    "two policies that differ",
    { jobConfig: { restartPolicy: "OnFailure" }, podConfig: { restartPolicy: "Never" } },
    ["pod_config.restart_policy"],
  ],
  [
    "two equal policies",
    { jobConfig: { restartPolicy: "Never" }, podConfig: { restartPolicy: "Never" } },
    [],
  ],
]);

describeSpec("cron_job", "cron job", [
  ["a time zone", { timezone: "Europe/Copenhagen" }, []],
  ["no schedule", { schedule: "" }, ["schedule"]],
  ["six fields", { schedule: "0 * * * * *" }, ["schedule"]],
  ["an unknown time zone", { timezone: "Mars/Olympus" }, ["timezone"]],
  ["an unknown concurrency policy", { concurrencyPolicy: "Queue" }, ["concurrency_policy"]],
  ["a negative deadline", { startingDeadlineSeconds: -1n }, ["starting_deadline_seconds"]],
  ["1,001 kept jobs", { successfulJobsHistoryLimit: 1001 }, ["successful_jobs_history_limit"]],
  ["1,001 kept failures", { failedJobsHistoryLimit: 1001 }, ["failed_jobs_history_limit"]],
  ["no container", { container: undefined }, ["container"]],
  ["a wrong job config", { jobConfig: { restartPolicy: "x" } }, ["job_config.restart_policy"]],
]);
