import { type WorkspaceStatus, WorkspaceType } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";

/**
 * Returns the status for clients. `ownerToken` is empty for callers that may not use the workspace.
 */
export function statusOf(record: InstanceRecord, ownerToken: string, nodeAddress: string): WorkspaceStatus {
  const { id, statusVersion, metadata, spec, phase, conditions, message, repo, node, podName, admission } =
    record;
  const nodeIp = node === "" ? "" : nodeAddress;
  return {
    ...{ id, statusVersion, metadata, spec, phase, conditions, message, repo },
    runtime: { nodeName: node, podName, nodeIp },
    auth: { admission, ownerToken },
  };
}

/** Reports whether the workspace has no interactive user and ends when its container ends. */
export function isHeadless(type: WorkspaceType): boolean {
  return type !== WorkspaceType.REGULAR;
}
