import type { DriverOptions, ExtraLabel } from "../config/driver-options.ts";
import type { TaskOptions } from "../config/task-options.ts";
import type { NewerTaskConfig } from "../rpc/newer-calls.ts";

export const TASK_ID_LABEL = "forage.dev/nomad-task";
const PREFIX = "com.hashicorp.nomad";

/**
 * Returns the labels of a task's container: the job's own, the task's id and those named in the plugin's
 * `extra_labels`.
 */
export function labelsOf(
  task: NewerTaskConfig,
  { labels }: TaskOptions,
  { extraLabels }: Pick<DriverOptions, "extraLabels">,
): Readonly<Record<string, string>> {
  const extra = extraLabels
    .map((name): [string, string] => [`${PREFIX}.${name}`, labelValue(task, name)])
    .filter(([, value]) => value !== "");
  return {
    ...labels,
    ...Object.fromEntries(extra),
    [`${PREFIX}.alloc_id`]: task.allocId,
    [TASK_ID_LABEL]: task.id,
  };
}

function labelValue(task: NewerTaskConfig, name: ExtraLabel): string {
  switch (name) {
    case "job_name":
      return task.jobName;
    case "task_group_name":
      return task.taskGroupName;
    case "task_name":
      return task.name;
    case "job_id":
    case "parent_job_id":
    case "namespace":
    case "node_name":
    case "node_id": {
      const { field, variable } = ADDED[name];
      return task.additions?.[field] || (task.env[variable] ?? "");
    }
    default:
      return name satisfies never;
  }
}

// Before Nomad 1.6, only the environment of the task contains them.
const ADDED = {
  job_id: { field: "jobId", variable: "NOMAD_JOB_ID" },
  parent_job_id: { field: "parentJobId", variable: "NOMAD_JOB_PARENT_ID" },
  namespace: { field: "namespace", variable: "NOMAD_NAMESPACE" },
  node_name: { field: "nodeName", variable: "NOMAD_NODE_NAME" },
  node_id: { field: "nodeId", variable: "NOMAD_NODE_ID" },
} as const;
