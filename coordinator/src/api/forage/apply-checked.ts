import type { ApplyResourcesRequest, ApplyResourcesResponse } from "@forage/proto/forest/v1/forage";
import { type Caller, callerName } from "../../rpc/caller.ts";
import { policyRoleOf } from "../namespaces/policy.ts";
import { type ApplyOptions, applyResources, bundleOf } from "./apply.ts";
import { type CheckOptions, validateAgainstState } from "./validate-against-state.ts";

/**
 * Stores a caller's request if all checks pass. @throws CoordinatorError INVALID, UNIMPLEMENTED, PERMISSION_DENIED,
 * RESOURCE_EXHAUSTED.
 */
export async function applyChecked(
  request: ApplyResourcesRequest,
  caller: Caller,
  options: ApplyOptions & CheckOptions,
): Promise<ApplyResourcesResponse> {
  const { namespaceRules, state, keepOthers } = options;
  validateAgainstState(request, caller, options, { keepOthers: keepOthers ?? false });
  return namespaceRules.inTurn(request.namespace, async () => {
    namespaceRules.checkQuota(request.namespace, bundleOf(request, state, keepOthers), caller);
    const policyRole = policyRoleOf(caller, request.namespace);
    return applyResources(request, { ...options, by: callerName(caller), policyRole });
  });
}
