import type { PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../errors.ts";
import { type PlanOptions, planApply } from "./plan-apply.ts";

/** Each plan copies the fleet while it runs. Waiting plans cost no memory. */
const maxWaiting = 16;

export interface PlannerOptions extends Omit<PlanOptions, "nowMs"> {
  readonly nowMs: () => number;
}

/** Makes plans one after the other, so that there is only one copy of the fleet at a time. */
export class Planner {
  readonly #options: PlannerOptions;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /** The request has been validated. Throws RESOURCE_EXHAUSTED when too many wait already. */
  async plan(request: ApplyResourcesRequest): Promise<PlanResponse> {
    if (this.#waiting >= maxWaiting)
      throw new CoordinatorError("RESOURCE_EXHAUSTED", `${maxWaiting} plans are being made; try again later`);
    this.#waiting++;
    const before = this.#last;
    const mine = (async () => {
      await before;
      return planApply(request, { ...this.#options, nowMs: this.#options.nowMs() });
    })();
    this.#last = mine.catch(() => {});
    try {
      return await mine;
    } finally {
      this.#waiting--;
    }
  }
}
