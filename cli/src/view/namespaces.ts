import { type Namespace, PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import type { Column } from "../output/table.ts";

const RESOURCES = ["pods", "cpu", "memory", "objects", "bytes"] as const;

export function namespaceColumns(): Column<Namespace>[] {
  return [
    { title: "NAMESPACE", value: ({ name }) => name },
    { title: "POLICY", value: ({ policies }) => policies.map(summary).join(", ") || "baseline (default)" },
    ...RESOURCES.map((resource) => ({
      title: resource.toUpperCase(),
      value: ({ used, quota }: Namespace) => shareOf(used[resource], quota[resource]),
      alignRight: true,
    })),
  ];
}

/** A policy of a namespace as shown in one line, including the default ones. */
export interface ShownPolicy {
  readonly namespace: string;
  readonly policy: PodPolicy;
  readonly isDefault: boolean;
}

export function shownPolicies({ name, policies }: Namespace): ShownPolicy[] {
  const own = policies.map((policy) => ({ namespace: name, policy, isDefault: false }));
  const has = (role: string): boolean => policies.some((policy) => policy.role === role);
  const missing = [
    ...(has("") || (has("editor") && has("admin")) ? [] : [PodPolicy.fromPartial({ profile: "baseline" })]),
    ...(has("global") ? [] : [PodPolicy.fromPartial({ role: "global", profile: "privileged" })]),
  ];
  return [...own, ...missing.map((policy) => ({ namespace: name, policy, isDefault: true }))];
}

/** Returns a warning for each resource that violates the namespace's present policies. */
export function violationLines({ name, violations, violatingResources }: Namespace): string[] {
  const lines = violations.map(
    (it) => `warning: ${it.kind}/${it.name} violates the policy: ${it.field}: ${it.message}`,
  );
  const more = violatingResources - violations.length;
  return more > 0
    ? [...lines, `warning: ${more} more resources of namespace ${name} violate the policy`]
    : lines;
}

export function policyColumns(): Column<ShownPolicy>[] {
  return [
    { title: "NAMESPACE", value: ({ namespace }) => namespace },
    { title: "TOKENS", value: ({ policy }) => policy.role || "editor, admin" },
    {
      title: "PROFILE",
      value: ({ policy, isDefault }) => policy.profile + (isDefault ? " (default)" : ""),
    },
    { title: "ALSO ALLOWED", value: ({ policy }) => allowances(policy).join("; ") },
  ];
}

export interface QuotaRow {
  readonly namespace: string;
  readonly resource: string;
  readonly used: string;
  readonly limit: string;
}

export function quotaRows({ name, quota, used, defaultQuota }: Namespace): QuotaRow[] {
  return RESOURCES.map((resource) => {
    const limit = quota[resource];
    const text = limit === undefined ? "none" : limit + (defaultQuota ? " (default)" : "");
    return { namespace: name, resource, used: used[resource] ?? "0", limit: text };
  });
}

export function quotaColumns(): Column<QuotaRow>[] {
  return [
    { title: "NAMESPACE", value: ({ namespace }) => namespace },
    { title: "RESOURCE", value: ({ resource }) => resource },
    { title: "USED", value: ({ used }) => used, alignRight: true },
    { title: "LIMIT", value: ({ limit }) => limit, alignRight: true },
  ];
}

function summary({ role, profile }: PodPolicy): string {
  return role === "" ? profile : `${role}: ${profile}`;
}

function shareOf(used: string | undefined, limit: string | undefined): string {
  return limit === undefined ? (used ?? "0") : `${used ?? "0"}/${limit}`;
}

function allowances(policy: PodPolicy): string[] {
  const lists = [
    ["host paths", policy.hostPaths],
    ["capabilities", policy.capabilities],
    ["host ports only", policy.hostPorts],
    ["devices only", policy.devices],
    ["runtime classes only", policy.runtimeClasses],
  ] as const;
  return [
    ...(policy.privileged ? ["privileged"] : []),
    ...(policy.hostNetwork ? ["host network"] : []),
    ...lists
      .filter(([, entries]) => entries.length > 0)
      .map(([what, entries]) => `${what}: ${entries.join(", ")}`),
  ];
}
