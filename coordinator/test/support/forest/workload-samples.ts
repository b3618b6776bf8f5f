import type { SampleTable } from "./sample-table.ts";

export const CONTAINER = { name: "main", image: "registry.example/team/app:v1" };

export const WORKLOAD_SAMPLES: SampleTable = {
  ForageResource: {
    base: { name: "web", spec: { $case: "containerService", value: { container: CONTAINER } } },
    values: { name: ["web", "a", "x-1"] },
  },
  ContainerServiceSpec: { base: { container: CONTAINER }, values: {} },
  ScalingPolicy: { base: {}, values: { replicas: [3, 0, 1, 10_000] } },
  AutoscalingPolicy: {
    base: {
      maxReplicas: 5,
      customMetrics: [{ name: "rps", targetType: "AverageValue", targetValue: "10" }],
    },
    values: {
      min_replicas: [2, 0, 5],
      max_replicas: [5, 10_000],
      target_cpu_utilization_percent: [70, 0, 250],
      target_memory_utilization_percent: [80, 0],
      scale_down_stabilization: [
        { seconds: 300n, nanos: 0 },
        { seconds: 0n, nanos: 500_000_000 },
        { seconds: 3600n, nanos: 0 },
      ],
    },
  },
  CustomMetric: {
    base: { name: "queue_depth", targetType: "AverageValue", targetValue: "30" },
    values: {
      name: ["queue_depth", "http:rps", "packets-per-second"],
      target_type: ["Value", "AverageValue"],
      target_value: ["30", "1500m", "2k"],
    },
  },
  UpdateStrategy: { base: {}, values: { type: ["RollingUpdate", "Recreate", ""] } },
  RollingUpdateConfig: {
    base: {},
    values: { max_unavailable: ["25%", "1", "100%", "0", ""], max_surge: ["25%", "1", "200%", "3", ""] },
  },
  JobSpec: { base: { container: CONTAINER }, values: {} },
  JobConfig: {
    base: {},
    values: {
      completions: [3, 10_000],
      parallelism: [2, 0, 10_000],
      completion_mode: ["NonIndexed", "Indexed", ""],
      backoff_limit: [4, 0],
      active_deadline_seconds: [600n, 0n],
      ttl_seconds_after_finished: [60n, 0n],
      restart_policy: ["OnFailure", "Never", ""],
    },
  },
  CronJobSpec: {
    base: { schedule: "*/5 * * * *", container: CONTAINER },
    values: {
      schedule: ["*/5 * * * *", "@hourly", "0 4 * JAN-MAR,DEC mon", "0 0 29 2 *", "5,10-20/2 ? 1 1 5-7"],
      timezone: ["Europe/Copenhagen", "UTC", "Etc/GMT+5", ""],
      concurrency_policy: ["Allow", "Forbid", "Replace", ""],
      successful_jobs_history_limit: [3, 0],
      failed_jobs_history_limit: [1, 1000],
      suspend: [true, false],
      starting_deadline_seconds: [30n, 0n],
    },
  },
  ServiceSpec: {
    base: { target: "web", ports: [{ port: 80 }] },
    values: {
      target: ["web", "api"],
      type: ["ClusterIP", "NodePort", "LoadBalancer", "Headless", ""],
      session_affinity: ["None", "ClientIP", ""],
      annotations: [{ "example.com/Note": "anything\ngoes" }],
    },
  },
  ServicePort: {
    base: { port: 80 },
    values: {
      name: ["http", "a-rather-long-name-for-a-port", ""],
      port: [80, 1, 65_535],
      target_port: [8080, 0],
      protocol: ["TCP", "UDP", "SCTP", ""],
      node_port: [30_080, 0],
    },
  },
};
