import type { StartWorkspaceRequest } from "@forage/proto/core";
import { parseAmount } from "@forage/scheduler";
import type { NamespaceRules } from "../../api/namespaces/namespace-rules.ts";
import { classOf, type WorkspaceClassSettings, type WorkspaceSettings } from "../settings.ts";
import type { InstanceEntry, WorkspaceView } from "../view.ts";

/** The rules of namespaces, as far as workspaces depend on them. */
export type NamespaceQuota = Pick<NamespaceRules, "checkPods" | "hasQuota" | "inTurn">;

/** The fields of a start request that decide what the workspace needs. */
const FIELDS: Readonly<Record<string, string>> = {
  pods: "id",
  cpu: "spec.class",
  memory: "spec.class",
  objects: "spec.envvars",
};

/**
 * Throws INVALID if the workspace exceeds the quota of its namespace. Workspaces that have no pod yet are counted as well, so that
 * starts at the same time can't exceed it.
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
  const wanted = {
    pods: sizes.length,
    cpu: sum(({ cpu }) => parseAmount("cpu", cpu)),
    memory: sum(({ memory }) => parseAmount("memory", memory)),
    // The secret with the values of its environment.
    objects: sizes.length,
  };
  quota.checkPods(settings.namespace, wanted, FIELDS);
}

function hasNoPodYet({ record }: InstanceEntry): boolean {
  return !record.podCreated && record.stop === undefined;
}
