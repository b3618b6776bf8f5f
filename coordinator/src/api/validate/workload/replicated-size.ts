import { ForageResource } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";

/**
 * The limit of a specification's size times its number of pods, because nodes and the coordinator hold the specification of
 * every pod. 10,000 replicas may have 26 KiB each, and a specification of 900 KiB may have 298 replicas.
 */
export const MAX_REPLICATED_BYTES = 256 * 1024 * 1024;

/** Rejects a workload whose specification, multiplied by its number of pods or runs, exceeds the limit. */
export function checkReplicatedSize(resource: ForageResource, labels: Labels, field: Field): void {
  const { spec } = resource;
  switch (spec?.$case) {
    case "containerService": {
      const { replicas = 1, autoscaling } = spec.value.scaling ?? {};
      const scaling = field.at("container_service").at("scaling");
      check(resource, labels, replicas, "replicas", scaling.at("replicas"));
      const most = autoscaling?.maxReplicas ?? 0;
      check(resource, labels, most, "replicas", scaling.at("autoscaling").at("max_replicas"));
      return;
    }
    case "job":
    case "cronJob": {
      const at = field.at(spec.$case === "job" ? "job" : "cron_job");
      const { parallelism = 1 } = spec.value.jobConfig ?? {};
      check(resource, labels, parallelism, "pods at a time", at.at("job_config").at("parallelism"));
      if (spec.$case !== "cronJob") return;
      const { successfulJobsHistoryLimit: succeeded, failedJobsHistoryLimit: failed } = spec.value;
      const worse = failed > succeeded ? "failed_jobs_history_limit" : "successful_jobs_history_limit";
      check(resource, labels, succeeded + failed, "kept runs", at.at(worse));
      return;
    }
    default:
      return;
  }
}

type Labels = Readonly<Record<string, string>>;

function check(resource: ForageResource, labels: Labels, count: number, what: string, field: Field): void {
  if (count <= 1) return;
  const bytes = ForageResource.encode(resource).finish().length + bytesOf(labels);
  const most = Math.max(1, Math.floor(MAX_REPLICATED_BYTES / bytes));
  if (count <= most) return;
  field.invalid(
    `must be at most ${most}, is ${count}: ${count} ${what} of a specification of ${bytes} bytes are more than ${MAX_REPLICATED_BYTES} bytes; lower it, or move large values to a config map or secret`,
  );
}

function bytesOf(labels: Labels): number {
  return Object.entries(labels).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
}
