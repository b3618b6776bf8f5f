import type {
  PlanRequest,
  PlanResponse,
  UpdateRolloutRequest,
  UpdateRolloutResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../../errors.ts";
import { type CallContext, type Caller, callerName } from "../../rpc/caller.ts";
import { bundleOf } from "../forage/apply.ts";
import { type CheckOptions, validateAgainstState } from "../forage/validate-against-state.ts";
import { findService } from "./revisions.ts";
import { type UpdateRolloutOptions, updateRollout } from "./update-rollout.ts";

/** The simulated cluster to which a planned change of a rollout is applied. */
type Copy = Pick<UpdateRolloutOptions, "store" | "state" | "clock" | "randomName">;

export interface PlanHandlerOptions extends CheckOptions {
  readonly planner: {
    plan(request: ApplyResourcesRequest, caller: string): Promise<PlanResponse>;
    planRollout(
      request: UpdateRolloutRequest,
      change: (copy: Copy) => Promise<UpdateRolloutResponse>,
      caller: string,
    ): Promise<PlanResponse>;
  };
}

/**
 * Returns the plan of an apply, undo or restart. Rejects what the real call rejects. @throws CoordinatorError
 * RESOURCE_EXHAUSTED if too many plans are computed at the same time.
 */
export async function plan(
  { namespace, bundle, rollout }: PlanRequest,
  { caller }: Pick<CallContext, "caller">,
  options: PlanHandlerOptions,
): Promise<PlanResponse> {
  if (rollout !== undefined && bundle !== undefined)
    throw new CoordinatorError("INVALID", "plan either a bundle or a rollout, not both");
  if (rollout !== undefined) return planUpdate(rollout, namespace, caller, options);
  const request = ApplyResourcesRequest.fromPartial({ ...bundle, applyId: bundle?.applyId || "plan" });
  if (request.namespace !== namespace)
    throw new CoordinatorError(
      "INVALID",
      `the bundle is for namespace "${request.namespace}", the request for "${namespace}"`,
    );
  validateAgainstState(request, caller, options);
  options.namespaceRules.checkQuota(namespace, bundleOf(request, options.state), caller);
  return options.planner.plan(request, callerName(caller));
}

function planUpdate(
  rollout: UpdateRolloutRequest,
  namespace: string,
  caller: Caller,
  { planner, state, namespaceRules }: PlanHandlerOptions,
): Promise<PlanResponse> {
  if (rollout.namespace !== namespace)
    throw new CoordinatorError(
      "INVALID",
      `the rollout is in namespace "${rollout.namespace}", the request is for "${namespace}"`,
    );
  const action = rollout.action?.$case;
  if (action !== "undo" && action !== "restart")
    throw new CoordinatorError("INVALID", "only an undo and a restart can be planned");
  findService(state, rollout);
  const events = { record: () => {} };
  return planner.planRollout(
    rollout,
    (copy) => updateRollout(rollout, caller, { ...copy, events, namespaceRules }),
    callerName(caller),
  );
}
