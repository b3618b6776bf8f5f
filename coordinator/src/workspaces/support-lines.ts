import { LEFT_OUT } from "@forage/common/scrub-text";
import {
  ActivityRecord,
  InstanceRecord,
  type InstanceSecrets,
} from "@forage/proto/forage/workspaces/v1/records";
import type { Vault } from "../objects/vault.ts";
import { openSecrets } from "./records.ts";
import type { WorkspaceView } from "./view.ts";

export type WorkspaceRecords = Pick<WorkspaceView, "instance" | "instances" | "secrets" | "activity">;

/**
 * The most instances in a bundle, the newest ones. A coordinator keeps stopped instances for a
 * while.
 */
const MAX_INSTANCES = 2_000;
/**
 * The fields of a record that are kept. All others are left out, so that a new field must be added
 * here explicitly. Secrets may be in annotations, locations of repositories and objects, and names
 * of changed files.
 */
const KEPT: readonly string[] = [
  ...["id", "type", "admission", "phase", "statusVersion", "namespace", "podName", "podUid", "podCreated"],
  ...["podGone", "node", "nodeLost", "createdAt", "runningSince", "stoppingSince", "stoppedAt"],
  ...["interruptedSince", "contentStage", "contentSource", "contentMessage", "contentEverReady"],
  ...["contentSafe", "contentKept", "contentLost", "contentDiscarded", "contentNearLimitBytes"],
  ...["quotaBytes", "transferCount", "stop", "customTimeout", "closedTimeoutOff", "conditions", "message"],
];
const KEPT_OF_METADATA: readonly string[] = ["owner", "metaId", "startedAt"];
const KEPT_OF_SPEC: readonly string[] = ["workspaceImage", "headless", "type", "timeout", "class"];
const KEPT_OF_TRANSFERS: readonly string[] = [
  ...["id", "kind", "state", "message", "orderedAt", "finishedAt", "tries"],
];
/**
 * Matches the last lines of a container's output, which follow an exit code in messages and may
 * contain secrets.
 */
const PRINTED = /(exit code -?\d+(?: \([^)]*\))?: ).+/s;

/** Returns one object for each workspace instance, newest first, without possible secrets. */
export function workspaceLines(view: WorkspaceRecords): readonly object[] {
  const newest = view
    .instances()
    .toSorted((a, b) => Number((b.record.createdAt?.seconds ?? 0n) - (a.record.createdAt?.seconds ?? 0n)));
  return newest.slice(0, MAX_INSTANCES).map(({ record }) => workspaceLine(record, view));
}

function workspaceLine(record: InstanceRecord, view: WorkspaceRecords): object {
  const json = InstanceRecord.toJSON(record) as Readonly<Record<string, unknown>>;
  const activity = view.activity(record.id)?.record;
  const used = activity === undefined ? {} : ActivityRecord.toJSON(activity);
  return withoutPrinted({
    ...picked(json, KEPT),
    metadata: picked(json.metadata, KEPT_OF_METADATA),
    spec: picked(json.spec, KEPT_OF_SPEC),
    transfers: ((json.transfers ?? []) as readonly unknown[]).map((it) => picked(it, KEPT_OF_TRANSFERS)),
    sshPublicKeys: record.sshPublicKeys.length,
    activity: picked(used, ["lastActivity", "firstUserActivity", "closed"]),
  }) as object;
}

function picked(from: unknown, names: readonly string[]): object {
  const fields = new Map(Object.entries(from ?? {}));
  return Object.fromEntries(names.flatMap((name) => (fields.has(name) ? [[name, fields.get(name)]] : [])));
}

function withoutPrinted(value: unknown): unknown {
  if (typeof value === "string") return value.replace(PRINTED, `$1${LEFT_OUT}`);
  if (Array.isArray(value)) return value.map(withoutPrinted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutPrinted(inner)]));
}

/**
 * Returns the tokens, environment values, credentials and download locations of all instances, so
 * that they can be redacted. @throws the error of the vault if a record can't be decrypted.
 */
export function workspaceSecrets(view: WorkspaceRecords, vault: Vault): ReadonlySet<string> {
  const values = new Set<string>();
  for (const { record } of view.instances()) {
    const sealed = view.secrets(record.id);
    if (sealed !== undefined) addSecrets(openSecrets(record.id, sealed, vault), values);
  }
  return values;
}

function addSecrets({ ownerToken, envvars, initializer }: InstanceSecrets, values: Set<string>): void {
  values.add(ownerToken);
  for (const { value } of envvars) values.add(value);
  addCredentials(initializer, values);
}

/** Adds the credentials in an initializer, at any depth. */
function addCredentials(value: unknown, values: Set<string>): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner !== "string") addCredentials(inner, values);
    else if (["authPassword", "authOts", "url"].includes(name)) values.add(inner);
    else if (/header|token|password/i.test(name)) values.add(inner);
  }
}
