import type { Field } from "../conversion/field.ts";
import type { Item } from "./item.ts";
import {
  type Draft,
  lost,
  NO_SCOPE,
  noEffect,
  part,
  type ReadField,
  type Rules,
  readFields,
  text,
  whole,
} from "./rules.ts";
import type { Workload } from "./workload-fields.ts";

export const TARGET_REF_FIELDS: Rules = {
  apiVersion: noEffect("the kind determines it"),
  kind: text,
  name: text,
};

export const METRIC_TARGET_FIELDS: Rules = {
  averageUtilization: whole,
  averageValue: text,
  type: text,
  value: text,
};
export const RESOURCE_METRIC_FIELDS: Rules = { name: text, target: part(METRIC_TARGET_FIELDS) };
export const METRIC_NAME_FIELDS: Rules = {
  name: text,
  selector: lost("has no counterpart: a metric is found by its name"),
};
export const NAMED_METRIC_FIELDS: Rules = {
  metric: part(METRIC_NAME_FIELDS),
  target: part(METRIC_TARGET_FIELDS),
};

const named: ReadField = (field, into, _key, scope) => {
  const { metric, target } = readFields(field, NAMED_METRIC_FIELDS, scope) as Record<
    string,
    Draft | undefined
  >;
  put(field, into, metric?.name, target);
};

export const METRIC_FIELDS: Rules = {
  containerResource: lost("has no counterpart: the containers of a pod count together"),
  external: named,
  object: lost("has no counterpart: push the value for the workload as a metric"),
  pods: named,
  resource: (field, into, _key, scope) => {
    const { name, target } = readFields(field, RESOURCE_METRIC_FIELDS, scope) as {
      readonly name?: string;
      readonly target?: Draft;
    };
    const percent = target?.average_utilization;
    if (percent !== undefined && (name === "cpu" || name === "memory"))
      into[`target_${name}_utilization_percent`] = percent;
    else put(field, into, name, target);
  },
  type: noEffect("the other fields determine it"),
};

function put(field: Field, into: Draft, name: unknown, target: Draft | undefined): void {
  const { type, value, average_value, average_utilization } = target ?? {};
  const amount = value ?? average_value ?? average_utilization;
  if (name === undefined || amount === undefined) {
    field.fail("has no name, or no target with a value");
    return;
  }
  const metric = { name, target_type: type, target_value: String(amount) };
  into.custom_metrics = [...((into.custom_metrics ?? []) as readonly Draft[]), metric];
}

export const SCALE_DOWN_FIELDS: Rules = {
  policies: lost("has no counterpart: the size shrinks at once to the recommended one"),
  selectPolicy: lost("has no counterpart"),
  stabilizationWindowSeconds: (field, into) => {
    into.scale_down_stabilization = `${field.whole()}s`;
  },
  tolerance: lost("has no counterpart: it is 10 %"),
};
export const SCALE_UP_FIELDS: Rules = {
  policies: lost("has no counterpart: within 15 s the replicas double, or grow by four"),
  selectPolicy: lost("has no counterpart"),
  stabilizationWindowSeconds: lost("has no counterpart: growth does not wait"),
  tolerance: lost("has no counterpart: it is 10 %"),
};
export const BEHAVIOR_FIELDS: Rules = {
  scaleDown: (field, into, _key, scope) => void readFields(field, SCALE_DOWN_FIELDS, scope, into),
  scaleUp: (field, into, _key, scope) => void readFields(field, SCALE_UP_FIELDS, scope, into),
};

/** The rules for all fields of a HorizontalPodAutoscaler, including its first version. */
export const AUTOSCALER_FIELDS: Rules = {
  behavior: (field, into, _key, scope) => void readFields(field, BEHAVIOR_FIELDS, scope, into),
  maxReplicas: whole,
  metrics: (field, into, _key, scope) => {
    for (const item of field.items()) readFields(item, METRIC_FIELDS, scope, into);
  },
  minReplicas: whole,
  scaleTargetRef: part(TARGET_REF_FIELDS),
  targetCPUUtilizationPercentage: (field, into) => {
    into.target_cpu_utilization_percent = field.whole();
  },
};

const METRICS = ["target_cpu_utilization_percent", "target_memory_utilization_percent", "custom_metrics"];
/** The default target of Kubernetes for an autoscaler without a metric. */
const USUAL_PERCENT = 80;

/** The `scaling` of a workload with an autoscaler. */
export interface Scaling {
  readonly workload: Workload;
  readonly scaling: Draft;
}

/** Reads an autoscaler. The workload's replicas become its initial size, within the limits. */
export function readAutoscaler(
  { spec, field, namespace }: Item,
  workloads: readonly Workload[],
): Scaling | undefined {
  if (spec === undefined) return field.fail("has no spec");
  const { scale_target_ref, ...read } = readFields(spec, AUTOSCALER_FIELDS, NO_SCOPE);
  const { kind, name } = (scale_target_ref ?? {}) as Record<string, string | undefined>;
  const workload = workloads.find(
    ({ item }) => item.kind === kind && item.name === name && item.namespace === namespace,
  );
  if (workload === undefined)
    return (spec.get("scaleTargetRef") ?? spec).fail(
      "names no workload of the files: read the autoscaler together with its workload",
    );
  const { replicas } = (workload.spec.scaling ?? {}) as { readonly replicas?: number };
  const usual = METRICS.some((metric) => read[metric] !== undefined)
    ? {}
    : { target_cpu_utilization_percent: USUAL_PERCENT };
  const least = Number(read.min_replicas ?? 1);
  const size = Math.min(Math.max(replicas ?? 1, least), Number(read.max_replicas ?? least));
  const autoscaling = { min_replicas: least, ...read, ...usual };
  return { workload, scaling: { replicas: size, autoscaling } };
}
