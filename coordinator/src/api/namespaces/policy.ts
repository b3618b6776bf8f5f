import { PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import type { Caller } from "../../rpc/caller.ts";

/** Kubernetes' Pod Security Standards. */
export const PROFILES = ["privileged", "baseline", "restricted"] as const;
export type Profile = (typeof PROFILES)[number];

/**
 * The kinds of tokens that a policy can be for. `global`: tokens for all namespaces. `editor`, `admin`: tokens limited to
 * namespaces. Empty: `editor` and `admin`.
 */
export const POLICY_ROLES = ["", "editor", "admin", "global"] as const;
export type PolicyRole = (typeof POLICY_ROLES)[number];

/** A policy with its profile parsed. */
export interface EffectivePolicy extends Omit<PodPolicy, "profile" | "role"> {
  readonly profile: Profile;
  readonly role: Exclude<PolicyRole, "">;
  readonly namespace: string;
}

/** Returns the policy that applies to what the caller creates in the namespace. Pure. */
export function policyFor(
  caller: Caller,
  namespace: string,
  policies: readonly PodPolicy[],
): EffectivePolicy {
  return policyForRole(policyRoleOf(caller, namespace), namespace, policies);
}

/** Returns the policy for one kind of token. Pure. */
export function policyForRole(
  role: Exclude<PolicyRole, "">,
  namespace: string,
  policies: readonly PodPolicy[],
): EffectivePolicy {
  const own = policies.find((policy) => policy.role === role);
  const shared = role === "global" ? undefined : policies.find((policy) => policy.role === "");
  const found = own ?? shared ?? PodPolicy.fromPartial({ profile: defaultProfile(role) });
  return { ...found, role, namespace, profile: profileOf(found.profile) ?? "restricted" };
}

/**
 * Returns the profile that applies without a policy. Global tokens belong to operators; all others must not get access to
 * hosts.
 */
export function defaultProfile(role: PolicyRole): Profile {
  return role === "global" ? "privileged" : "baseline";
}

export function profileOf(text: string): Profile | undefined {
  return PROFILES.find((profile) => profile === text);
}

/** Reports whether the caller's token is limited to namespaces. Default quotas apply only to these callers. Pure. */
export function isNamespaced(caller: Caller, namespace: string): boolean {
  return policyRoleOf(caller, namespace) !== "global";
}

/** Returns the kind of token whose policy applies to a stored resource. */
export function storedRole(text: string): Exclude<PolicyRole, ""> {
  return text === "editor" || text === "admin" ? text : "global";
}

/** Returns the kind of the caller's token in the namespace. Pure. */
export function policyRoleOf(caller: Caller, namespace: string): Exclude<PolicyRole, ""> {
  if (caller.type !== "user") return "editor";
  if (caller.grants.some(({ namespaces }) => namespaces === "*")) return "global";
  const isAdmin = caller.grants.some(
    ({ role, namespaces }) => role === "admin" && namespaces !== "*" && namespaces.includes(namespace),
  );
  return isAdmin ? "admin" : "editor";
}
