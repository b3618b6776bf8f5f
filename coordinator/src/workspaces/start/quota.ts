import type { StartWorkspaceRequest } from "@forage/proto/core";
import { parseAmount } from "@forage/scheduler";
import type { NamespaceRules } from "../../api/namespaces/namespace-rules.ts";
import { classOf, type WorkspaceClassSettings, type WorkspaceSettings } from "../settings.ts";
import type { InstanceEntry, WorkspaceView } from "../view.ts";

/** The namespace rules that apply to workspaces. */
export type NamespaceQuota = Pick<NamespaceRules, "checkPods" | "hasQuota" | "inTurn">;

/** The field of a start request that determines each resource. */
const FIELDS: Readonly<Record<string, string>> = {
  pods: "id",
  cpu: "spec.class",
  memory: "spec.class",
  objects: "spec.envvars",
};

/**
 * Throws INVALID if the workspace exceeds the quota of its namespace. Workspaces without a pod are
 * counted as well, so that concurrent starts can't exceed the quota.
 */
export function checkQuota(
  { spec }: StartWorkspaceRequest,
  {
    settings,
    view,
    quota,
  }: {
    readonly settings: WorkspaceSettings;
    readonly view: Pick<WorkspaceView, "instances">;
    readonly quota: NamespaceQuota;
  },
): void {
  if (!quota.hasQuota(settings.namespace)) return;
  const podless = view.instances().filter(hasNoPodYet);
  const classes = [spec?.class ?? "", ...podless.map(({ record }) => record.spec?.class ?? "")];
  const sizes = classes.flatMap((id) => classOf(settings, id) ?? []);
  const sum = (amount: (size: WorkspaceClassSettings) => number): number =>
    sizes.reduce((total, size) => total + amount(size), 0);
  const needed = {
    pods: sizes.length,
    cpu: sum(({ cpu }) => parseAmount("cpu", cpu)),
    memory: sum(({ memory }) => parseAmount("memory", memory)),
    // Each workspace has one object: the secret with its environment.
    objects: sizes.length,
  };
  quota.checkPods(settings.namespace, needed, FIELDS);
}

function hasNoPodYet({ record }: InstanceEntry): boolean {
  return !record.podCreated && record.stop === undefined;
}
