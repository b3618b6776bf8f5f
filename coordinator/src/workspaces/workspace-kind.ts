/** Kind of the pods' workload. No resource has it: pods of workspaces are created and stopped by their own reconciler. */
export const WORKSPACE_KIND = "workspace";
