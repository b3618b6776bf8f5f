import { PREFIXES } from "../model/keys.ts";

/**
 * The prefix of the keys of workspace records. Instance ids are DNS labels; owners and meta ids are
 * escaped.
 */
export const WORKSPACES_PREFIX = "workspaces/";

export const WORKSPACE_PREFIXES = {
  instances: "workspaces/instances/",
  secrets: PREFIXES.workspaceSecrets,
  activity: "workspaces/activity/",
  live: "workspaces/live/",
  backups: "workspaces/backups/",
  snapshots: "workspaces/snapshots/",
  usedCodes: "workspaces/used-codes/",
} as const;

export function instanceKey(id: string): string {
  return `${WORKSPACE_PREFIXES.instances}${id}`;
}

/**
 * Returns the key of an instance's secrets record. The record's encryption is bound to this key.
 */
export function secretsKey(id: string): string {
  return `${WORKSPACE_PREFIXES.secrets}${id}`;
}

export function activityKey(id: string): string {
  return `${WORKSPACE_PREFIXES.activity}${id}`;
}

/** Returns the key of the record that names the one instance of a meta id that has not stopped. */
export function liveKey(metaId: string): string {
  return `${WORKSPACE_PREFIXES.live}${encodeURIComponent(metaId)}`;
}

export function backupKey({ owner, metaId }: { readonly owner: string; readonly metaId: string }): string {
  return `${WORKSPACE_PREFIXES.backups}${encodeURIComponent(owner)}/${encodeURIComponent(metaId)}`;
}

export function snapshotKey(url: string): string {
  return `${WORKSPACE_PREFIXES.snapshots}${encodeURIComponent(url)}`;
}

/** Returns the key of a used one-time code. Nonces are hexadecimal. */
export function usedCodeKey(nonce: string): string {
  return `${WORKSPACE_PREFIXES.usedCodes}${nonce}`;
}
