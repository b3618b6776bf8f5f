import type { PodPolicy, PolicyViolation } from "@forage/proto/forage/operator/v1/operator";
import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { FieldViolation } from "../../errors.ts";
import { namespaceKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { checkPolicy } from "./check-policy.ts";
import { podOf } from "./pod-parts.ts";
import { policyForRole, storedRole } from "./policy.ts";

/** The limit of listed resources when an operator tightens a policy. */
const MAX_LISTED = 50;

/**
 * Returns the features of the resource's pods that the policy no longer allows for the kind of token that applied the
 * resource. Resources without a recorded kind, because an earlier version or no request applied them, are checked as with a
 * global token. Pure.
 */
export function storedViolations(
  record: ResourceRecord,
  policies: readonly PodPolicy[],
): readonly FieldViolation[] {
  if (record.resource === undefined || record.deleting) return [];
  const findings = new Findings();
  const placed = podOf(record.resource, new Field(findings));
  if (placed === undefined) return [];
  checkPolicy(placed, policyForRole(storedRole(record.policyRole), record.namespace, policies));
  return findings.invalidFields;
}

/** Returns the first violation of each resource, for a limited number of resources. Pure. */
export function listViolations(
  records: readonly ResourceRecord[],
  policies: readonly PodPolicy[],
): { readonly violations: PolicyViolation[]; readonly violating: number } {
  const violations: PolicyViolation[] = [];
  let violating = 0;
  for (const record of records) {
    // A run keeps the content that its cron job had, and ends by itself.
    if (record.owner !== undefined) continue;
    const [first] = storedViolations(record, policies);
    if (first === undefined) continue;
    violating += 1;
    const { kind, name } = record;
    if (violations.length < MAX_LISTED)
      violations.push({ kind, name, field: first.field, message: first.description });
  }
  return { violations, violating };
}

/**
 * Returns a function that returns the reason why the policy of a stored resource's namespace rejects its pods. Undefined:
 * the policy allows them.
 */
export function policyRefusalIn(state: Pick<ClusterView, "namespaces">) {
  return (record: ResourceRecord): string | undefined => {
    const policies = state.namespaces.get(namespaceKey(record.namespace))?.record.policies ?? [];
    const [first, ...others] = storedViolations(record, policies);
    if (first === undefined) return undefined;
    const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
    return `${first.field}: ${first.description}${more}`;
  };
}
