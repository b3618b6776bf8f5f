import { KnownSecrets } from "@forage/common/known-secrets";
import type { Vault } from "../objects/vault.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { WorkspaceSource } from "./workspace-source.ts";

export interface KnownValuesOptions {
  readonly state: ClusterView;
  readonly vault: Vault;
  /** The workspaces. Default: none. */
  readonly workspaces?: WorkspaceSource | undefined;
}

/**
 * The least length of an environment variable's value that counts as secret. Shorter values, such
 * as `true` or `info`, are seldom secret and occur in other texts.
 */
const MIN_ENV_LENGTH = 8;

/**
 * Returns a finder for the values of all secrets, registry credentials and environment variables,
 * including those of workspaces, by which logs and messages are redacted. @throws the error of the
 * vault if a secret can't be decrypted.
 */
export function knownValues({ state, vault, workspaces }: KnownValuesOptions): KnownSecrets {
  const values = new Set<string>(workspaces?.secrets());
  for (const kind of ["secret", "registry_credential"] as const) {
    for (const { name, record } of state.objects.list({ kind })) {
      // Such a secret also contains names and paths, such as the id of the instance, without which
      // logs are unreadable.
      if (workspaces?.isEnvironment(name, record.labels)) continue;
      for (const id of record.versions) {
        const version = state.objects.version(name, id);
        if (version === undefined) continue;
        for (const value of Object.values(vault.open(name, version))) values.add(value.toString("utf8"));
      }
    }
  }
  for (const { record } of state.resources()) addEnvironment(record.resource, values);
  for (const { record } of state.pods()) addEnvironment(record.template, values);
  return new KnownSecrets(values);
}

/** Adds the values of environment variables at any depth of the message. */
function addEnvironment(message: unknown, values: Set<string>): void {
  if (typeof message !== "object" || message === null || message instanceof Uint8Array) return;
  for (const [name, inner] of Object.entries(message)) {
    if (name === "env" && Array.isArray(inner)) for (const variable of inner) addValue(variable, values);
    else addEnvironment(inner, values);
  }
}

function addValue(variable: unknown, values: Set<string>): void {
  const { valueSource } = variable as { readonly valueSource?: { $case: string; value: unknown } };
  if (valueSource?.$case !== "value" || typeof valueSource.value !== "string") return;
  if (valueSource.value.length >= MIN_ENV_LENGTH) values.add(valueSource.value);
}
