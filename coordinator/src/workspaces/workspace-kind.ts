/**
 * The kind of the pods' workload. No resource has this kind: pods of workspaces are created and
 * stopped by their own reconciler.
 */
export const WORKSPACE_KIND = "workspace";
