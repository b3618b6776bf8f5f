import { HostPathLimits } from "@forage/proto/forage/agent/v1/agent";
import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import { namespaceKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import { parseHostPath } from "./host-path.ts";
import { policyForRole, storedRole } from "./policy.ts";

/**
 * Returns a function that returns the host paths which the policy of its namespace allows a pod. The node checks them against what it
 * mounts, since links on its disk decide where a path leads. Undefined for a pod without host paths, and for one that may mount any.
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
