import type { PlanResponse, UpdateRolloutRequest } from "@forage/proto/forage/operator/v1/operator";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { Shares } from "../rpc/shares.ts";
import { type PlanOptions, planApply, planRollout } from "./plan-apply.ts";

/** The most waiting plans. Only a running plan needs memory, for a copy of the fleet. */
const MAX_WAITING = 16;
const MAX_WAITING_OF_CALLER = 4;

export interface PlannerOptions extends Omit<PlanOptions, "nowMs"> {
  readonly nowMs: () => number;
}

/**
 * Runs plans and dry runs one after the other, so that there is only one copy of the fleet at a
 * time.
 */
export class Planner {
  readonly #options: PlannerOptions;
  #last: Promise<unknown> = Promise.resolve();
  readonly #slots = new Shares({
    what: "plans and trials that wait for their turn",
    total: MAX_WAITING,
    ofUser: MAX_WAITING_OF_CALLER,
  });

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  /** Plans a validated request. Throws RESOURCE_EXHAUSTED if too many plans are waiting. */
  plan(request: ApplyResourcesRequest, caller: string): Promise<PlanResponse> {
    return this.inTurn(caller, (options) => planApply(request, options));
  }

  /**
   * Returns what a change of a rollout would do. `change` writes it to the copy. Throws its errors
   * and RESOURCE_EXHAUSTED.
   */
  planRollout(
    request: UpdateRolloutRequest,
    change: Parameters<typeof planRollout>[1],
    caller: string,
  ): Promise<PlanResponse> {
    return this.inTurn(caller, (options) => planRollout(request, change, options));
  }

  /**
   * Runs other work that needs a copy of the fleet, after the work before it has ended. Throws
   * RESOURCE_EXHAUSTED if too much work is waiting, in total or for this caller.
   */
  async inTurn<T>(caller: string, run: (options: PlanOptions) => Promise<T>): Promise<T> {
    const release = this.#slots.acquire(caller);
    const before = this.#last;
    const mine = (async () => {
      await before;
      return run({ ...this.#options, nowMs: this.#options.nowMs() });
    })();
    this.#last = mine.catch(() => {});
    try {
      return await mine;
    } finally {
      release();
    }
  }
}
