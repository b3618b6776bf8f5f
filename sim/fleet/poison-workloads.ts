import { ResourceRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import type { Poisons } from "./poison-store.ts";
import {
  ABSURD,
  asking,
  BEFORE,
  container,
  HUGE,
  MOST,
  NAMESPACE,
  put,
  resource,
  workload,
} from "./poison-store.ts";

/** Resources whose pods can't be made, placed or counted. */
export const poisonedWorkloads: Poisons = {
  "container service: requests whose sum is too large": () => [
    workload("sum", { container: asking("5Pi"), sidecars: [asking("5Pi", "side")] }),
  ],
  "container service: no quantities": () => [workload("quantity", { container: asking("a lot") })],
  "container service: no container": () => [workload("empty", { container: undefined })],
  "container service: no specification": () => [
    resource("container_service", "containerService", "nothing", undefined),
    put(`resources/${NAMESPACE}/container_service/void`, ResourceRecord, {
      namespace: NAMESPACE,
      kind: "container_service",
      name: "void",
    }),
  ],
  "container service: more replicas than any fleet takes": () => [
    // None of its pods can be placed, so the others have room.
    workload("countless", { scaling: { replicas: MOST }, podConfig: { nodeSelector: { none: "none" } } }),
  ],
  "container service: limits of autoscaling that contradict each other": () => [
    workload("scaling", {
      scaling: {
        replicas: 1,
        autoscaling: { minReplicas: 9, maxReplicas: 0, metrics: [{ type: "Nonsense" }] },
      },
    }),
  ],
  "container service: no update limits": () => [
    workload("surge", {
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "banana", maxUnavailable: "-3%" } },
    }),
    workload("strategy", { updateStrategy: { type: "Nonsense" } }),
  ],
  "container service: restarted at no date": () => [workload("restarted", {}, { restartedAt: ABSURD })],
  "container service: created at no date": () => [
    workload("created", {}, { createdAt: ABSURD, updatedAt: BEFORE }),
  ],
  "container service: annotations that say nothing": () => [
    workload("annotated", {
      podConfig: {
        annotations: {
          "forage.dev/disruption-budget": "banana",
          "forage.dev/canary": "-1",
          "forage.dev/min-ready-seconds": "NaN",
          "forage.dev/depends-on": "///,,job/",
          "forage.dev/rollback": "maybe",
        },
      },
    }),
  ],
  "container service: impossible constraints": () => [
    workload("affinity", {
      podConfig: {
        affinity: {
          nodeAffinity: {
            required: { terms: [{ matchExpressions: [{ key: "", operator: "Nonsense", values: [] }] }] },
          },
        },
        tolerations: [{ key: "", operator: "Nonsense", effect: "Never", tolerationSeconds: -(2n ** 62n) }],
        topologySpreadConstraints: [{ maxSkew: -1, topologyKey: "", whenUnsatisfiable: "Nonsense" }],
        priorityClassName: "none",
      },
    }),
  ],
  "container service: volumes and secrets that are none": () => [
    workload("volumes", { volumes: [{ name: "" }, { name: "", source: { $case: "secret", value: {} } }] }),
  ],
  "container service: key and content differ": () => [
    put(`resources/${NAMESPACE}/container_service/other`, ResourceRecord, {
      namespace: "",
      kind: "",
      name: "",
    }),
  ],
  "job: counts that are none": () => [
    resource("job", "job", "counts", {
      container,
      jobConfig: {
        completions: MOST,
        parallelism: MOST,
        backoffLimit: HUGE,
        completionMode: "Nonsense",
        activeDeadlineSeconds: -(2n ** 60n),
      },
    }),
  ],
  "job: more than its indexes": () => [
    resource("job", "job", "indexed", {
      container,
      jobConfig: { completions: HUGE, parallelism: 1, completionMode: "Indexed" },
    }),
    put(`workload-statuses/${NAMESPACE}/job/indexed`, WorkloadStatusRecord, {
      ...{ namespace: NAMESPACE, kind: "job", name: "indexed" },
      status: {
        $case: "job",
        value: { completedIndexes: "9-1,,x", startedAt: ABSURD, failuresInARow: MOST },
      },
    }),
  ],
  "job: no container": () => [resource("job", "job", "empty", {})],
  "cron job: no schedule": () => [
    resource("cron_job", "cronJob", "never", { container, schedule: "banana" }),
    resource("cron_job", "cronJob", "zone", { container, schedule: "* * * * *", timeZone: "Nowhere/Never" }),
    resource("cron_job", "cronJob", "impossible", {
      container,
      schedule: "0 0 31 2 *",
      concurrencyPolicy: "Nonsense",
    }),
  ],
  "cron job: decided until no date": () => [
    resource("cron_job", "cronJob", "decided", {
      container,
      schedule: "* * * * *",
      startingDeadlineSeconds: -1n,
    }),
    put(`workload-statuses/${NAMESPACE}/cron_job/decided`, WorkloadStatusRecord, {
      ...{ namespace: NAMESPACE, kind: "cron_job", name: "decided" },
      status: {
        $case: "cronJob",
        value: { decidedUntil: ABSURD, lastScheduledAt: BEFORE, schedule: "banana" },
      },
    }),
  ],
};
