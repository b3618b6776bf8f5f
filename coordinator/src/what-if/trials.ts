import type {
  CapacityRequest,
  CapacityResponse,
  WhatIfRequest,
  WhatIfResponse,
} from "@forage/proto/forage/operator/v1/operator";
import type { Planner } from "../plan/planner.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { capacityOf } from "./capacity.ts";
import { loseAnyNode } from "./lose-any-node.ts";
import { checkSuppositions } from "./suppose.ts";
import { tryOut } from "./try-out.ts";

export interface TrialsOptions {
  readonly state: ClusterView;
  readonly planner: Pick<Planner, "inTurn">;
}

/**
 * Answers what a change of the fleet would do, and how many more pods fit. Plans and dry runs run
 * one after the other.
 */
export class Trials {
  readonly #options: TrialsOptions;

  constructor(options: TrialsOptions) {
    this.#options = options;
  }

  /**
   * Evaluates suppositions. Throws INVALID, NOT_FOUND and FAILED_PRECONDITION with the path of an
   * invalid supposition, and RESOURCE_EXHAUSTED if too many requests are waiting.
   */
  async whatIf({ suppositions }: WhatIfRequest, caller: string): Promise<WhatIfResponse> {
    const { state, planner } = this.#options;
    checkSuppositions(suppositions, state);
    return planner.inTurn(caller, async (options) => {
      // The state may have changed while the request was waiting.
      checkSuppositions(suppositions, state);
      const isAny = suppositions[0]?.supposition?.$case === "loseAnyNode";
      return isAny ? loseAnyNode(options) : tryOut(suppositions, options);
    });
  }

  /** Computes how many more pods fit. Throws INVALID, NOT_FOUND and RESOURCE_EXHAUSTED. */
  capacity(request: CapacityRequest, caller: string): Promise<CapacityResponse> {
    const { state, planner } = this.#options;
    return planner.inTurn(caller, ({ control, turn }) =>
      capacityOf(request, { state, profile: control.profile, turn }),
    );
  }
}
