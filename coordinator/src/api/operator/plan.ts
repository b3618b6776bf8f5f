import type { PlanRequest, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../../errors.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { bundleOf } from "../forage/apply.ts";
import { type CheckOptions, validateAgainstState } from "../forage/validate-against-state.ts";

export interface PlanHandlerOptions extends CheckOptions {
  readonly planner: { plan(request: ApplyResourcesRequest): Promise<PlanResponse> };
}

/** Refuses what an apply refuses, and throws RESOURCE_EXHAUSTED while too many others are planned. */
export async function plan(
  { namespace, bundle }: PlanRequest,
  { caller }: Pick<CallContext, "caller">,
  options: PlanHandlerOptions,
): Promise<PlanResponse> {
  const request = ApplyResourcesRequest.fromPartial({ ...bundle, applyId: bundle?.applyId || "plan" });
  if (request.namespace !== namespace)
    throw new CoordinatorError(
      "INVALID",
      `the bundle is for namespace "${request.namespace}", the request for "${namespace}"`,
    );
  validateAgainstState(request, caller, options);
  options.namespaceRules.checkQuota(namespace, bundleOf(request, options.state), caller);
  return options.planner.plan(request);
}
