import type { OperatorServiceService, PushedMetric } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { MetricName, PushedMetrics, PushedValue } from "../../metrics/pushed-metrics.ts";
import { MEASURED_RESOURCES } from "../../model/autoscaling.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Handlers } from "../../rpc/serve.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { metricNameProblem } from "../validate/syntax/metric-name.ts";
import { dnsLabelProblem } from "../validate/syntax/names.ts";

export type MetricHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "putMetric" | "listMetrics" | "deleteMetric"
>;

/** The default time for which a pushed value is valid, in seconds: four evaluations of the autoscaler. */
const DEFAULT_TTL_SECONDS = 60;
/**
 * The longest time for which a pushed value may be valid, in seconds. A value that is pushed less often doesn't describe
 * the current load.
 */
const MAX_TTL_SECONDS = 3600;

/** Returns the handlers for pushed values of custom metrics. */
export function metricHandlers(pushed: PushedMetrics): MetricHandlers {
  return {
    putMetric: async ({ namespace, metric }) => {
      const { name, value, ttlSeconds } = validated(namespace, metric);
      return { metric: viewOf(pushed.put(name, value, ttlSeconds)) };
    },
    listMetrics: async ({ namespace, name }) => {
      const values = pushed.list(namespace || undefined);
      return { metrics: values.filter((value) => name === "" || value.name === name).map(viewOf) };
    },
    deleteMetric: async ({ namespace, name, workload, pod }) => {
      if (pushed.delete({ namespace, name, workload, pod })) return {};
      throw new CoordinatorError("NOT_FOUND", `namespace "${namespace}" has no value of metric "${name}"`);
    },
  };
}

function validated(namespace: string, metric: PushedMetric | undefined) {
  const findings = new Findings();
  const request = new Field(findings);
  request.at("namespace").check(dnsLabelProblem(namespace));
  const field = request.at("metric");
  const { name, workload, pod, value, ttlSeconds } = metric ?? EMPTY_METRIC;
  if (metric === undefined) field.invalid("must be given");
  field.at("name").check(metricNameProblem(name));
  if (MEASURED_RESOURCES.some((resource) => resource === name))
    field.at("name").invalid("is measured by the agents and can't be pushed");
  if (workload !== "" && pod !== "") field.at("pod").invalid("must not be given with workload");
  if (workload !== "") field.at("workload").check(dnsLabelProblem(workload));
  if (pod !== "") field.at("pod").check(dnsLabelProblem(pod));
  if (!Number.isFinite(value) || value < 0) field.at("value").invalid("must be a number of at least 0");
  if (ttlSeconds > MAX_TTL_SECONDS) field.at("ttl_seconds").invalid(`must be at most ${MAX_TTL_SECONDS}`);
  findings.raise();
  const of: MetricName = { namespace, name, workload, pod };
  return { name: of, value, ttlSeconds: ttlSeconds === 0 ? DEFAULT_TTL_SECONDS : ttlSeconds };
}

const EMPTY_METRIC = { name: "", workload: "", pod: "", value: 0, ttlSeconds: 0 };

function viewOf({ namespace, name, workload, pod, ...rest }: PushedValue): PushedMetric {
  const { value, ttlSeconds, pushedAtMs, expiresAtMs } = rest;
  return {
    namespace,
    name,
    workload,
    pod,
    value,
    ttlSeconds,
    pushedAt: toTimestamp(pushedAtMs),
    expiresAt: toTimestamp(expiresAtMs),
  };
}
