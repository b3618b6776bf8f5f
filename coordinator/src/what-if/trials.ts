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

/** Answers what a change of the fleet would do, and how much more fits. Trials and plans have their turn one after the other. */
export class Trials {
  readonly #options: TrialsOptions;

  constructor(options: TrialsOptions) {
    this.#options = options;
  }

  /**
   * Throws INVALID, NOT_FOUND and FAILED_PRECONDITION with the path of a supposition that can't be tried out, and
   * RESOURCE_EXHAUSTED when too many wait already.
   */
  async whatIf({ suppositions }: WhatIfRequest, caller: string): Promise<WhatIfResponse> {
    const { state, planner } = this.#options;
    checkSuppositions(suppositions, state);
    return planner.inTurn(caller, async (options) => {
      // Something may have changed while others had their turn.
      checkSuppositions(suppositions, state);
      const isAny = suppositions[0]?.supposition?.$case === "loseAnyNode";
      return isAny ? loseAnyNode(options) : tryOut(suppositions, options);
    });
  }

  /** Throws INVALID, NOT_FOUND and RESOURCE_EXHAUSTED. */
  capacity(request: CapacityRequest, caller: string): Promise<CapacityResponse> {
    const { state, planner } = this.#options;
    return planner.inTurn(caller, ({ control, turn }) =>
      capacityOf(request, { state, profile: control.profile, turn }),
    );
  }
}
