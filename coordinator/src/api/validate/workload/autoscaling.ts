import type {
  AutoscalingPolicy,
  Container,
  ContainerServiceSpec,
  PodConfig,
} from "@forage/proto/forest/v1/forage";
import { amountText } from "../../../model/amount-text.ts";
import {
  MEASURED_RESOURCES,
  METRICS_ANNOTATIONS,
  metricsAnnotationProblem,
} from "../../../model/autoscaling.ts";
import type { Field } from "../field.ts";
import { amountOf } from "../syntax/quantity.ts";

/** Validates the parts of a service that its autoscaling policy depends on. `field` is the service's. */
export function validateAutoscaled(spec: ContainerServiceSpec, field: Field): void {
  validateMetricsAnnotations(spec.podConfig?.annotations ?? {}, field.at("pod_config").at("annotations"));
  const policy = spec.scaling?.autoscaling;
  if (policy === undefined) return;
  const at = field.at("scaling").at("autoscaling");
  const { targetCpuUtilizationPercent: cpu, targetMemoryUtilizationPercent: memory, customMetrics } = policy;
  if (cpu === 0 && memory === 0 && customMetrics.length === 0) {
    at.invalid(
      "has no target: set target_cpu_utilization_percent, target_memory_utilization_percent or custom_metrics",
    );
  }
  validateNames(policy, at);
  for (const resource of utilized(policy)) requireRequests(spec, resource, field);
}

/** Rejects metrics annotations on pods without autoscaling. `field` is that of the annotations. */
export function refuseMetricsAnnotations(config: PodConfig | undefined, field: Field): void {
  for (const name of Object.values(METRICS_ANNOTATIONS))
    if (Object.hasOwn(config?.annotations ?? {}, name))
      field.key(name).invalid("is only for container services, because nothing else is autoscaled");
}

/** Rejects two targets with the same name and type, because only one of them could apply. */
function validateNames(policy: AutoscalingPolicy, at: Field): void {
  const seen = new Set<string>();
  if (policy.targetCpuUtilizationPercent !== 0) seen.add("cpu Utilization");
  if (policy.targetMemoryUtilizationPercent !== 0) seen.add("memory Utilization");
  for (const [index, { name, targetType }] of policy.customMetrics.entries()) {
    const metric = at.at("custom_metrics").item(index);
    const key = `${name} ${targetType}`;
    if (seen.has(key)) metric.at("name").invalid(`has a target of type ${targetType} already`);
    seen.add(key);
    if (isMeasured(name) && targetType === "Value")
      metric
        .at("target_type")
        .invalid("must be AverageValue or Utilization for a metric that is measured for each pod");
  }
}

/** Returns the resources whose target is a percentage of the requests. */
function utilized({
  targetCpuUtilizationPercent,
  targetMemoryUtilizationPercent,
  customMetrics,
}: AutoscalingPolicy): ReadonlySet<string> {
  const named = customMetrics
    .filter(({ targetType }) => targetType === "Utilization")
    .map(({ name }) => name);
  return new Set([
    ...(targetCpuUtilizationPercent === 0 ? [] : ["cpu"]),
    ...(targetMemoryUtilizationPercent === 0 ? [] : ["memory"]),
    ...named,
  ]);
}

/**
 * Requires requests for the resource. Every container uses cpu and memory, so each needs a request; for other resources,
 * one container with a request is enough.
 */
function requireRequests(spec: ContainerServiceSpec, resource: string, field: Field): void {
  const containers = [
    ...(spec.container === undefined ? [] : [{ container: spec.container, at: field.at("container") }]),
    ...spec.sidecars.map((container, index) => ({ container, at: field.at("sidecars").item(index) })),
  ];
  const lacking = containers.filter(({ container }) => !asksFor(container, resource));
  const problem = `must be set (or its limit): the autoscaling target is a percentage of the requests of ${resource}`;
  if (isMeasured(resource)) {
    for (const { at } of lacking) at.at("resources").at("requests").at(resource).invalid(problem);
  } else if (lacking.length === containers.length && spec.container !== undefined) {
    const requests = field.at("container").at("resources").at("requests");
    if (resource === "ephemeral-storage") requests.at("ephemeral_storage").invalid(problem);
    else
      requests
        .at("extended")
        .invalid(
          `must name "${resource.slice(0, 100)}", because the autoscaling target Utilization is a percentage of its requests`,
        );
  }
}

/** Reports whether the container requests the resource. Malformed values are reported by another check. */
function asksFor({ resources }: Container, resource: string): boolean {
  const text = amountText(resources?.requests, resource) || amountText(resources?.limits, resource);
  return text !== "" && amountOf(resource, text).nano !== 0n;
}

function validateMetricsAnnotations(annotations: Readonly<Record<string, string>>, field: Field): void {
  for (const [name, value] of Object.entries(annotations))
    field.key(name).check(metricsAnnotationProblem(name, value));
  const { port, path, scheme } = METRICS_ANNOTATIONS;
  if (Object.hasOwn(annotations, port)) return;
  for (const name of [path, scheme])
    if (Object.hasOwn(annotations, name)) field.key(name).invalid(`has no effect without ${port}`);
}

function isMeasured(name: string): boolean {
  return MEASURED_RESOURCES.some((resource) => resource === name);
}
