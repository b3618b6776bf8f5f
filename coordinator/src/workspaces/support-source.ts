import type { ObjectName } from "../model/object-name.ts";
import type { Vault } from "../objects/vault.ts";
import type { WorkspaceSource } from "../support/workspace-source.ts";
import { secretNameOf } from "./pod/environment-secret.ts";
import { INSTANCE_LABEL } from "./pod/pod-template.ts";
import { type WorkspaceRecords, workspaceLines, workspaceSecrets } from "./support-lines.ts";

/** Describes the workspaces of the view for support bundles. */
export function workspaceSource(view: WorkspaceRecords, vault: Vault): WorkspaceSource {
  return {
    lines: () => workspaceLines(view),
    secrets: () => workspaceSecrets(view, vault),
    isEnvironment: (name, labels) => isEnvironment(name, labels, view),
  };
}

function isEnvironment(
  { namespace, kind, name }: ObjectName,
  { [INSTANCE_LABEL]: id = "" }: Readonly<Record<string, string>>,
  view: WorkspaceRecords,
): boolean {
  const instance = view.instance(id)?.record;
  if (instance === undefined || view.secrets(id) === undefined) return false;
  const own = secretNameOf(instance);
  return own.namespace === namespace && own.kind === kind && own.name === name;
}
