import type { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import type { DriverOptions, ExtraLabel } from "../config/driver-options.ts";
import type { TaskOptions } from "../config/task-options.ts";

export const TASK_ID_LABEL = "forage.dev/nomad-task";
const PREFIX = "com.hashicorp.nomad";

/** Labels of a task's container: the job's own, the task's id and those that the plugin's `extra_labels` names. */
export function labelsOf(
  task: TaskConfig,
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

function labelValue(task: TaskConfig, name: ExtraLabel): string {
  switch (name) {
    case "job_name":
      return task.jobName;
    case "task_group_name":
      return task.taskGroupName;
    case "task_name":
      return task.name;
    case "job_id":
    case "namespace":
    case "node_name":
    case "node_id":
      return task.env[ENVIRONMENT[name]] ?? "";
    default:
      return name satisfies never;
  }
}

// Nomad passes them to every task.
const ENVIRONMENT = {
  job_id: "NOMAD_JOB_ID",
  namespace: "NOMAD_NAMESPACE",
  node_name: "NOMAD_NODE_NAME",
  node_id: "NOMAD_NODE_ID",
} as const;
