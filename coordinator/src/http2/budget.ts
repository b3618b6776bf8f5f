export interface BudgetRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Limits how often a peer may do something: a token bucket, and what the peer has earned otherwise. Times are monotonic. */
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

  /** Adds to the budget what this side gave the peer reason for. */
  earn(count: number): void {
    this.#earned += count;
  }

  /** Counts one; false when the budget is used up. */
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
