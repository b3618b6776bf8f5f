export interface BudgetRate {
  readonly burst: number;
  readonly perSecond: number;
}

/**
 * A token bucket that limits how often a peer may do something, to which allowances for caused
 * actions are added. Times are monotonic.
 */
export class Budget {
  readonly #rate: BudgetRate;
  #left: number;
  #earned = 0;
  #filledMs: number;

  constructor(rate: BudgetRate, nowMs: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#filledMs = nowMs;
  }

  /** Adds to the budget for actions of this side that cause actions of the peer. */
  earn(count: number): void {
    this.#earned += count;
  }

  /** Counts one action. Returns false if the budget is exhausted. */
  spend(nowMs: number): boolean {
    if (this.#earned > 0) {
      this.#earned--;
      return true;
    }
    const refill = ((nowMs - this.#filledMs) / 1000) * this.#rate.perSecond;
    this.#left = Math.min(this.#rate.burst, this.#left + refill) - 1;
    this.#filledMs = nowMs;
    return this.#left >= 0;
  }
}
