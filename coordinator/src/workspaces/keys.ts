import { prefixes } from "../model/keys.ts";

/** Keys of the records of workspaces in the store. Instance ids are DNS labels; owners and meta ids are escaped. */
export const WORKSPACES_PREFIX = "workspaces/";

export const workspacePrefixes = {
  instances: "workspaces/instances/",
  secrets: prefixes.workspaceSecrets,
  activity: "workspaces/activity/",
  live: "workspaces/live/",
  backups: "workspaces/backups/",
  snapshots: "workspaces/snapshots/",
} as const;

export function instanceKey(id: string): string {
  return `${workspacePrefixes.instances}${id}`;
}

/** Also what the record's encryption is bound to. */
export function secretsKey(id: string): string {
  return `${workspacePrefixes.secrets}${id}`;
}

export function activityKey(id: string): string {
  return `${workspacePrefixes.activity}${id}`;
}

/** The record of the one instance of a meta id that has not stopped. */
export function liveKey(metaId: string): string {
  return `${workspacePrefixes.live}${encodeURIComponent(metaId)}`;
}

export function backupKey({ owner, metaId }: { readonly owner: string; readonly metaId: string }): string {
  return `${workspacePrefixes.backups}${encodeURIComponent(owner)}/${encodeURIComponent(metaId)}`;
}

export function snapshotKey(url: string): string {
  return `${workspacePrefixes.snapshots}${encodeURIComponent(url)}`;
}
