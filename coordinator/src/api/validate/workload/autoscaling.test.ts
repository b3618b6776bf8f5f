import { CONTAINER } from "../../../../test/support/forest/workload-samples.ts";
import { describeSpec, inPodConfig } from "../../../../test/support/spec-cases.ts";

const REQUESTS = { cpu: "100m", memory: "64Mi" };
const asking = (list: object) => ({ container: { ...CONTAINER, resources: { requests: list } } });
const METRIC = { name: "rps", targetType: "Value", targetValue: "10" };
const autoscaling = (fields: object) => ({
  ...asking(REQUESTS),
  scaling: { autoscaling: { maxReplicas: 5, customMetrics: [METRIC], ...fields } },
});
const metrics = (...all: readonly object[]) =>
  autoscaling({ customMetrics: all.map((fields) => ({ ...METRIC, ...fields })) });
const AT = "scaling.autoscaling";
const GPU = "vendor.example/gpu";

describeSpec("container_service", "autoscaling", [
  ["an autoscaler without a maximum", autoscaling({ maxReplicas: 0 }), [`${AT}.max_replicas`]],
  ["a minimum above the maximum", autoscaling({ minReplicas: 6 }), [`${AT}.min_replicas`]],
  ["targets above 100 %", autoscaling({ targetCpuUtilizationPercent: 250 }), []],
  [
    "targets beyond 32 bits",
    autoscaling({
      targetCpuUtilizationPercent: 2_147_483_648,
      targetMemoryUtilizationPercent: 2_147_483_648,
    }),
    [`${AT}.target_cpu_utilization_percent`, `${AT}.target_memory_utilization_percent`],
  ],
  ["an hour of stabilisation", autoscaling({ scaleDownStabilization: { seconds: 3600n } }), []],
  [
    "more than an hour",
    autoscaling({ scaleDownStabilization: { seconds: 3600n, nanos: 1 } }),
    [`${AT}.scale_down_stabilization`],
  ],
  ["a metric", metrics({}), []],
  ["a metric without a name", metrics({ name: "" }), [`${AT}.custom_metrics[0].name`]],
  ["a metric's name with a slash", metrics({ name: "a/b" }), [`${AT}.custom_metrics[0].name`]],
  ["a target without a type", metrics({ targetType: "" }), [`${AT}.custom_metrics[0].target_type`]],
  ["a target of 0", metrics({ targetValue: "0" }), [`${AT}.custom_metrics[0].target_value`]],
  ["a target of 0e5", metrics({ targetValue: "0e5" }), [`${AT}.custom_metrics[0].target_value`]],
  ["no target", metrics({ targetValue: "" }), [`${AT}.custom_metrics[0].target_value`]],
  ["a utilisation of 70", metrics({ name: "memory", targetType: "Utilization", targetValue: "70" }), []],
  ["a utilisation of 70%", metrics({ name: "memory", targetType: "Utilization", targetValue: "70%" }), []],
  [
    "a utilisation of 0.7",
    metrics({ name: "memory", targetType: "Utilization", targetValue: "0.7" }),
    [`${AT}.custom_metrics[0].target_value`],
  ],
  [
    "51 metrics",
    autoscaling({
      customMetrics: Array.from({ length: 51 }, (_, index) => ({ ...METRIC, name: `m${index}` })),
    }),
    [`${AT}.custom_metrics`],
  ],
]);

describeSpec("container_service", "what autoscaling steers by", [
  ["nothing", autoscaling({ customMetrics: [] }), [AT]],
  ["cpu alone", autoscaling({ customMetrics: [], targetCpuUtilizationPercent: 50 }), []],
  [
    "cpu without a request",
    { ...autoscaling({ targetCpuUtilizationPercent: 50 }), ...asking({ memory: "1Gi" }) },
    ["container.resources.requests.cpu"],
  ],
  [
    "a share of cpu with a request of 0",
    { ...autoscaling({ targetCpuUtilizationPercent: 50 }), ...asking({ cpu: "0" }) },
    ["container.resources.requests.cpu"],
  ],
  [
    "a share of cpu with a limit, which counts as the request",
    {
      ...autoscaling({ targetCpuUtilizationPercent: 50 }),
      container: { ...CONTAINER, resources: { limits: { cpu: "1" } } },
    },
    [],
  ],
  [
    "a share of memory that a sidecar does not request",
    { ...autoscaling({ targetMemoryUtilizationPercent: 50 }), sidecars: [{ ...CONTAINER, name: "side" }] },
    ["sidecars[0].resources.requests.memory"],
  ],
  ["a metric without requests", { ...metrics({}), container: CONTAINER }, []],
  ["the same metric with two types", metrics({}, { targetType: "AverageValue" }), []],
  ["the same metric twice", metrics({}, {}), [`${AT}.custom_metrics[1].name`]],
  [
    "cpu twice",
    autoscaling({
      targetCpuUtilizationPercent: 50,
      customMetrics: [{ name: "cpu", targetType: "Utilization", targetValue: "60" }],
    }),
    [`${AT}.custom_metrics[0].name`],
  ],
  ["cores a pod", metrics({ name: "cpu", targetType: "AverageValue", targetValue: "500m" }), []],
  ["the cores of which pod", metrics({ name: "cpu" }), [`${AT}.custom_metrics[0].target_type`]],
  [
    "a share of memory without a request",
    { ...metrics({ name: "memory", targetType: "Utilization" }), ...asking({ cpu: "1" }) },
    ["container.resources.requests.memory"],
  ],
  [
    "a share of a resource that no container requests",
    metrics({ name: GPU, targetType: "Utilization" }),
    ["container.resources.requests.extended"],
  ],
  [
    "a share of devices",
    {
      ...metrics({ name: GPU, targetType: "Utilization" }),
      container: {
        ...CONTAINER,
        resources: { requests: { extended: { [GPU]: "1" } }, limits: { extended: { [GPU]: "1" } } },
      },
    },
    [],
  ],
  [
    "a share of the disk without a request",
    metrics({ name: "ephemeral-storage", targetType: "Utilization" }),
    ["container.resources.requests.ephemeral_storage"],
  ],
]);

const annotated = (annotations: object) => inPodConfig({ annotations });
const key = (name: string) => `pod_config.annotations[forage.dev/metrics-${name}]`;

describeSpec("container_service", "where pods serve their metrics", [
  ["a port", annotated({ "forage.dev/metrics-port": "9090" }), []],
  [
    "all of it",
    annotated({
      "forage.dev/metrics-port": "443",
      "forage.dev/metrics-path": "/stats?format=prometheus",
      "forage.dev/metrics-scheme": "https",
    }),
    [],
  ],
  ["a port of 0", annotated({ "forage.dev/metrics-port": "0" }), [key("port")]],
  ["a port beyond all", annotated({ "forage.dev/metrics-port": "65536" }), [key("port")]],
  ["a port by name", annotated({ "forage.dev/metrics-port": "http" }), [key("port")]],
  ["a path without a port", annotated({ "forage.dev/metrics-path": "/m" }), [key("path")]],
  [
    "a path with a line break",
    annotated({ "forage.dev/metrics-port": "1", "forage.dev/metrics-path": "/ HTTP/1.1\r\nx: y" }),
    [key("path")],
  ],
  [
    "a relative path",
    annotated({ "forage.dev/metrics-port": "1", "forage.dev/metrics-path": "metrics" }),
    [key("path")],
  ],
  [
    "an unknown scheme",
    annotated({ "forage.dev/metrics-port": "1", "forage.dev/metrics-scheme": "ftp" }),
    [key("scheme")],
  ],
]);

for (const kind of ["job", "cron_job"] as const)
  describeSpec(kind, `metrics of a ${kind}`, [
    ["a port", annotated({ "forage.dev/metrics-port": "9090" }), [key("port")]],
    ["another annotation", annotated({ "example.com/note": "x" }), []],
  ]);
