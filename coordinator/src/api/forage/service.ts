import type { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { hasLabels } from "../../model/labels.ts";
import { callerName } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import { validateDelete } from "../validate/delete.ts";
import type { ApplyOptions } from "./apply.ts";
import { applyChecked } from "./apply-checked.ts";
import { markDeleting } from "./remove.ts";
import type { CheckOptions } from "./validate-against-state.ts";
import { type RolloutSource, watchRolloutHandler } from "./watch-rollout.ts";

export interface ForageOptions extends ApplyOptions, CheckOptions {
  readonly rollouts: RolloutSource;
}

/** Returns the handlers of `forest.v1.ForageService`. */
export function forageService(options: ForageOptions): Handlers<typeof ForageServiceService> {
  const { state, store, rollouts } = options;
  return {
    applyResources: (request, { caller }) => applyChecked(request, caller, options),
    watchRollout: watchRolloutHandler(state, rollouts),
    deleteResources: async (request, { caller }) => {
      validateDelete(request);
      const choose = () =>
        state.resources(request.namespace).filter(({ record }) => hasLabels(record.labels, request.labels));
      await markDeleting(choose, { store, state, by: callerName(caller) });
      return {};
    },
  };
}
