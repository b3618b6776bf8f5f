import { testFields } from "../../test/field-table.ts";
import * as autoscaler from "./autoscaler-fields.ts";
import { ITEM_FIELDS } from "./item.ts";
import * as job from "./job-fields.ts";
import * as object from "./object-fields.ts";
import * as workload from "./workload-fields.ts";

testFields("object with a spec", ITEM_FIELDS, {
  apiVersion: ["v1", "no effect"],
  kind: ["Service", "no effect"],
  metadata: ["{name: a}", "no effect"],
  spec: ["{}", "no effect"],
  status: ["{replicas: 1}", "no effect"],
});

const minReady = ["5", { annotations: { "forage.dev/min-ready-seconds": "5" } }] as const;
const selector = ["{matchLabels: {a: b}}", { selector: { match_labels: { a: "b" } } }] as const;

testFields("Deployment", workload.DEPLOYMENT_FIELDS, {
  minReadySeconds: minReady,
  paused: ["true", "lost"],
  progressDeadlineSeconds: ["60", { annotations: { "forage.dev/progress-deadline": "60s" } }],
  replicas: ["0", { replicas: 0 }],
  revisionHistoryLimit: ["5", "no effect"],
  selector,
  strategy: ["{type: Recreate}", { strategy: { type: "Recreate" } }],
  template: ["{}", "no effect"],
});
testFields("Deployment's strategy", workload.STRATEGY_FIELDS, {
  rollingUpdate: ["{maxSurge: 1}", { rolling_update: { max_surge: "1" } }],
  type: ["Recreate", { type: "Recreate" }],
});
testFields("rolling update", workload.ROLLING_UPDATE_FIELDS, {
  maxSurge: ["25%", { max_surge: "25%" }],
  maxUnavailable: ["0", { max_unavailable: "0" }],
});
testFields("StatefulSet", workload.STATEFUL_SET_FIELDS, {
  minReadySeconds: minReady,
  ordinals: ["{start: 1}", "lost"],
  persistentVolumeClaimRetentionPolicy: ["{whenDeleted: Retain}", "no effect"],
  podManagementPolicy: ["Parallel", "no effect"],
  replicas: ["1", { replicas: 1 }],
  revisionHistoryLimit: ["5", "no effect"],
  selector,
  serviceName: ["a", "no effect"],
  template: ["{}", "no effect"],
  updateStrategy: [
    "{rollingUpdate: {maxUnavailable: 1}}",
    { update_strategy: { rolling_update: { max_unavailable: "1" } } },
  ],
  volumeClaimTemplates: ["[]", "no effect"],
});
testFields("StatefulSet's strategy", workload.STATEFUL_STRATEGY_FIELDS, {
  rollingUpdate: ["{maxUnavailable: 1}", { rolling_update: { max_unavailable: "1" } }],
  type: ["OnDelete", "lost"],
});
testFields("StatefulSet's rolling update", workload.STATEFUL_UPDATE_FIELDS, {
  maxUnavailable: ["1", { max_unavailable: "1" }],
  partition: ["1", "lost"],
});
testFields("claim template", workload.CLAIM_TEMPLATE_FIELDS, {
  apiVersion: ["v1", "no effect"],
  kind: ["PersistentVolumeClaim", "no effect"],
  metadata: ["{name: a}", "no effect"],
  spec: ["{}", "no effect"],
  status: ["{phase: Bound}", "no effect"],
});
testFields("DaemonSet", workload.DAEMON_SET_FIELDS, {
  minReadySeconds: minReady,
  revisionHistoryLimit: ["5", "no effect"],
  selector,
  template: ["{}", "no effect"],
  updateStrategy: [
    "{rollingUpdate: {maxSurge: 1}}",
    { update_strategy: { rolling_update: { max_surge: "1" } } },
  ],
});

testFields("Job", job.JOB_FIELDS, {
  activeDeadlineSeconds: ["60", { active_deadline_seconds: 60 }],
  backoffLimit: ["2", { backoff_limit: 2 }],
  backoffLimitPerIndex: ["1", "lost"],
  completionMode: ["Indexed", { completion_mode: "Indexed" }],
  completions: ["2", { completions: 2 }],
  managedBy: ["a", "lost"],
  manualSelector: ["true", "no effect"],
  maxFailedIndexes: ["1", "lost"],
  parallelism: ["0", "lost"],
  podFailurePolicy: ["{rules: [{action: Ignore}]}", "lost"],
  podReplacementPolicy: ["Failed", "lost"],
  selector: ["{matchLabels: {a: b}}", "no effect"],
  successPolicy: ["{rules: [{succeededCount: 1}]}", "lost"],
  suspend: ["true", "lost"],
  template: ["{}", "no effect"],
  ttlSecondsAfterFinished: ["60", { ttl_seconds_after_finished: 60 }],
});
testFields("CronJob", job.CRON_JOB_FIELDS, {
  concurrencyPolicy: ["Forbid", { concurrency_policy: "Forbid" }],
  failedJobsHistoryLimit: ["0", "lost"],
  jobTemplate: ["{}", "no effect"],
  schedule: ['"* * * * *"', { schedule: "* * * * *" }],
  startingDeadlineSeconds: ["60", { starting_deadline_seconds: 60 }],
  successfulJobsHistoryLimit: ["2", { successful_jobs_history_limit: 2 }],
  suspend: ["true", { suspend: true }],
  timeZone: ["Asia/Tokyo", { timezone: "Asia/Tokyo" }],
});
testFields("job template", job.JOB_TEMPLATE_FIELDS, {
  metadata: ["{labels: {a: b}}", "no effect"],
  spec: ["{}", "no effect"],
});

testFields("HorizontalPodAutoscaler", autoscaler.AUTOSCALER_FIELDS, {
  behavior: ["{scaleDown: {stabilizationWindowSeconds: 60}}", { scale_down_stabilization: "60s" }],
  maxReplicas: ["5", { max_replicas: 5 }],
  metrics: [
    "[{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]",
    { target_memory_utilization_percent: 50 },
  ],
  minReplicas: ["2", { min_replicas: 2 }],
  scaleTargetRef: [
    "{apiVersion: apps/v1, kind: Deployment, name: a}",
    { scale_target_ref: { kind: "Deployment", name: "a" } },
  ],
  targetCPUUtilizationPercentage: ["50", { target_cpu_utilization_percent: 50 }],
});
testFields("scale target", autoscaler.TARGET_REF_FIELDS, {
  apiVersion: ["apps/v1", "no effect"],
  kind: ["Deployment", { kind: "Deployment" }],
  name: ["a", { name: "a" }],
});
const queue = { name: "queue", target_type: "Value", target_value: "5" };
testFields("metric", autoscaler.METRIC_FIELDS, {
  containerResource: ["{name: cpu}", "lost"],
  external: ["{metric: {name: queue}, target: {type: Value, value: 5}}", { custom_metrics: [queue] }],
  object: ["{metric: {name: a}}", "lost"],
  pods: ["{metric: {name: queue}, target: {type: Value, value: 5}}", { custom_metrics: [queue] }],
  resource: [
    "{name: cpu, target: {type: AverageValue, averageValue: 500m}}",
    { custom_metrics: [{ name: "cpu", target_type: "AverageValue", target_value: "500m" }] },
  ],
  type: ["Pods", "no effect"],
});
testFields("named metric", autoscaler.NAMED_METRIC_FIELDS, {
  metric: ["{name: a}", { metric: { name: "a" } }],
  target: ["{value: 1}", { target: { value: "1" } }],
});
testFields("name of a metric", autoscaler.METRIC_NAME_FIELDS, {
  name: ["a", { name: "a" }],
  selector: ["{matchLabels: {a: b}}", "lost"],
});
testFields("metric of a resource", autoscaler.RESOURCE_METRIC_FIELDS, {
  name: ["cpu", { name: "cpu" }],
  target: ["{averageUtilization: 5}", { target: { average_utilization: 5 } }],
});
testFields("metric's target", autoscaler.METRIC_TARGET_FIELDS, {
  averageUtilization: ["5", { average_utilization: 5 }],
  averageValue: ["5m", { average_value: "5m" }],
  type: ["Value", { type: "Value" }],
  value: ["5", { value: "5" }],
});
testFields("behavior", autoscaler.BEHAVIOR_FIELDS, {
  scaleDown: ["{stabilizationWindowSeconds: 0}", { scale_down_stabilization: "0s" }],
  scaleUp: ["{stabilizationWindowSeconds: 0}", "no effect"],
});
testFields("way down", autoscaler.SCALE_DOWN_FIELDS, {
  policies: ["[{type: Pods, value: 1}]", "lost"],
  selectPolicy: ["Max", "lost"],
  stabilizationWindowSeconds: ["60", { scale_down_stabilization: "60s" }],
  tolerance: ["0.05", "lost"],
});
testFields("way up", autoscaler.SCALE_UP_FIELDS, {
  policies: ["[{type: Pods, value: 1}]", "lost"],
  selectPolicy: ["Max", "lost"],
  stabilizationWindowSeconds: ["60", "lost"],
  tolerance: ["0.05", "lost"],
});

const ofObject = {
  apiVersion: ["v1", "no effect"],
  kind: ["a", "no effect"],
  metadata: ["{name: a}", "no effect"],
  status: ["{phase: Active}", "no effect"],
} as const;
testFields("ConfigMap", object.CONFIG_MAP_FIELDS, {
  ...ofObject,
  binaryData: ["{a: AAE=}", { data: { a: "AAE=" } }],
  data: ["{a: b}", { data: { a: "Yg==" } }],
  immutable: ["true", "lost"],
});
testFields("Secret", object.SECRET_FIELDS, {
  ...ofObject,
  data: ["{a: Yg==}", { data: { a: "Yg==" } }],
  immutable: ["true", "lost"],
  stringData: ["{a: b}", "no effect"],
  type: ["Opaque", { type: "Opaque" }],
});
testFields("PersistentVolumeClaim", object.CLAIM_FIELDS, {
  accessModes: ["[ReadWriteMany]", "lost"],
  dataSource: ["{kind: a}", "lost"],
  dataSourceRef: ["{kind: a}", "lost"],
  resources: ["{requests: {storage: 1Gi}}", { capacity: "1Gi" }],
  selector: ["{matchLabels: {a: b}}", "lost"],
  storageClassName: ["fast", "lost"],
  volumeAttributesClassName: ["a", "lost"],
  volumeMode: ["Block", "lost"],
  volumeName: ["a", "lost"],
});
testFields("claim's resources", object.CLAIM_RESOURCES_FIELDS, {
  limits: ["{storage: 1Gi}", "lost"],
  requests: ["{storage: 1Gi}", { capacity: "1Gi" }],
});
testFields("PriorityClass", object.PRIORITY_CLASS_FIELDS, {
  ...ofObject,
  description: ["a", { description: "a" }],
  globalDefault: ["true", { global_default: true }],
  preemptionPolicy: ["Never", { never_preempts: true }],
  value: ["-5", { value: -5 }],
});
testFields("Namespace", object.NAMESPACE_FIELDS, {
  ...ofObject,
  spec: ["{finalizers: [kubernetes]}", { spec: {} }],
});
