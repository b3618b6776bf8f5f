import type { PlanResponse, UpdateRolloutRequest } from "@forage/proto/forage/operator/v1/operator";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../errors.ts";
import { type PlanOptions, planApply, planRollout } from "./plan-apply.ts";

/** Each plan copies the fleet while it runs. Waiting plans cost no memory. */
const MAX_WAITING = 16;

export interface PlannerOptions extends Omit<PlanOptions, "nowMs"> {
  readonly nowMs: () => number;
}

/** Makes plans and trials one after the other, so that there is only one copy of the fleet at a time. */
export class Planner {
  readonly #options: PlannerOptions;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /** The request has been validated. Throws RESOURCE_EXHAUSTED when too many wait already. */
  plan(request: ApplyResourcesRequest): Promise<PlanResponse> {
    return this.inTurn((options) => planApply(request, options));
  }

  /** Returns what a change of a rollout would do, which `change` writes to the copy. Throws its errors and RESOURCE_EXHAUSTED. */
  planRollout(
    request: UpdateRolloutRequest,
    change: Parameters<typeof planRollout>[1],
  ): Promise<PlanResponse> {
    return this.inTurn((options) => planRollout(request, change, options));
  }

  /**
   * Runs something else that needs a copy of the fleet, once those before it have ended. Throws RESOURCE_EXHAUSTED when too many
   * wait already.
   */
  async inTurn<T>(run: (options: PlanOptions) => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_WAITING} plans and trials wait for their turn; try again later`,
      );
    this.#waiting++;
    const before = this.#last;
    const mine = (async () => {
      await before;
      return run({ ...this.#options, nowMs: this.#options.nowMs() });
    })();
    this.#last = mine.catch(() => {});
    try {
      return await mine;
    } finally {
      this.#waiting--;
    }
  }
}
