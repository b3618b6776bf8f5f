export interface BudgetRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Limits how often, or how many bytes of something, a peer may send: a token bucket. Times are monotonic. */
export class RateBudget {
  readonly #rate: BudgetRate;
  #left: number;
  #filledMs: number;

  constructor(rate: BudgetRate, nowMs: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#filledMs = nowMs;
  }

  /** Takes an amount out; false when the budget is used up. */
  spend(nowMs: number, amount = 1): boolean {
    const { burst, perSecond } = this.#rate;
    const refill = ((nowMs - this.#filledMs) / 1000) * perSecond;
    this.#left = Math.min(burst, this.#left + refill) - amount;
    this.#filledMs = nowMs;
    return this.#left >= 0;
  }
}
