import { HostPathLimits } from "@forage/proto/forage/agent/v1/agent";
import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import { namespaceKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import { parseHostPath } from "./host-path.ts";
import { policyForRole, storedRole } from "./policy.ts";

/**
 * Returns a function that returns the host paths that a pod may mount by its namespace's policy. The node checks mounts
 * against them, because links on its disk may lead elsewhere. Undefined for a pod without host paths, and for a pod that
 * may mount any.
 */
export function hostPathLimitsIn(state: Pick<ClusterView, "namespaces" | "resource">) {
  return ({ record, workloadKey }: Pick<PodEntry, "record" | "workloadKey">): HostPathLimits | undefined => {
    if (!hasHostPaths(record)) return undefined;
    const policies = state.namespaces.get(namespaceKey(record.namespace))?.record.policies ?? [];
    const role = storedRole(state.resource(workloadKey)?.record.policyRole ?? "");
    const policy = policyForRole(role, record.namespace, policies);
    if (policy.profile === "privileged") return undefined;
    return HostPathLimits.fromPartial({ prefixes: policy.hostPaths.map((it) => parseHostPath(it).prefix) });
  };
}

function hasHostPaths({ template }: PodRecord): boolean {
  return (template?.volumes ?? []).some(({ source }) => source?.$case === "hostPath");
}
