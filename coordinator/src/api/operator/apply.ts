import type { ApplyRequest, ApplyResponse } from "@forage/proto/forage/operator/v1/operator";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../../errors.ts";
import { resourceKey } from "../../model/keys.ts";
import type { Caller } from "../../rpc/caller.ts";
import type { ApplyOptions } from "../forage/apply.ts";
import { applyChecked } from "../forage/apply-checked.ts";
import type { CheckOptions } from "../forage/validate-against-state.ts";

/** Applies like `ForageService.ApplyResources`, with the additional options of the operator API. */
export async function apply(
  { namespace, bundle, keepOthers, agreedRemovals: agreed }: ApplyRequest,
  caller: Caller,
  options: ApplyOptions & CheckOptions,
): Promise<ApplyResponse> {
  const request = bundle ?? ApplyResourcesRequest.fromPartial({});
  if (request.namespace !== namespace)
    throw new CoordinatorError(
      "INVALID",
      `the bundle is for namespace "${request.namespace}", the request for "${namespace}"`,
    );
  const agreedRemovals =
    agreed && new Set(agreed.resources.map((ref) => resourceKey(ref.namespace, ref.kind, ref.name)));
  return applyChecked(request, caller, { ...options, keepOthers, agreedRemovals });
}
