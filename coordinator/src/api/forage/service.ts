import type { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../../errors.ts";
import { hasLabels } from "../../model/labels.ts";
import { assertNamespace } from "../../rpc/access.ts";
import { callerName } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import { validateDelete } from "../validate/delete.ts";
import { type ApplyOptions, applyResources, bundleOf } from "./apply.ts";
import { type CheckOptions, checkApply } from "./check-apply.ts";
import { markDeleting } from "./remove.ts";
import { type RolloutSource, watchRollout } from "./watch-rollout.ts";

export interface ForageOptions extends ApplyOptions, CheckOptions {
  readonly rollouts: RolloutSource;
}

/** `forest.v1.ForageService`. */
export function forageService(options: ForageOptions): Handlers<typeof ForageServiceService> {
  const { state, store, rollouts } = options;
  return {
    applyResources: async (request, { caller }) => {
      checkApply(request, caller, options);
      const { namespaceRules } = options;
      return namespaceRules.inTurn(request.namespace, async () => {
        namespaceRules.checkQuota(request.namespace, bundleOf(request, state), caller);
        return applyResources(request, { ...options, by: callerName(caller) });
      });
    },
    watchRollout: async function* ({ rolloutId }, context) {
      const rollout = state.rollout(rolloutId);
      if (rollout === undefined)
        throw new CoordinatorError("NOT_FOUND", `there is no rollout "${rolloutId}"`);
      assertNamespace(context.caller, context.method, rollout.record.namespace);
      yield* watchRollout(rolloutId, rollouts, context.signal);
    },
    deleteResources: async (request, { caller }) => {
      validateDelete(request);
      const choose = () =>
        state.resources(request.namespace).filter(({ record }) => hasLabels(record.labels, request.labels));
      await markDeleting(choose, { store, state, by: callerName(caller) });
      return {};
    },
  };
}
