export interface BudgetRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** A token bucket that limits how often a peer may send something, or how many bytes. Times are monotonic. */
export class RateBudget {
  readonly #rate: BudgetRate;
  #left: number;
  #filledMs: number;

  constructor(rate: BudgetRate, nowMs: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#filledMs = nowMs;
  }

  /** Spends an amount. Returns false if the budget is used up. */
  spend(nowMs: number, amount = 1): boolean {
    this.#fill(nowMs);
    this.#left -= amount;
    return this.#left >= 0;
  }

  /** Returns an amount to the budget. */
  restore(nowMs: number, amount = 1): void {
    this.#left += amount;
    this.#fill(nowMs);
  }

  #fill(nowMs: number): void {
    const { burst, perSecond } = this.#rate;
    const refill = ((nowMs - this.#filledMs) / 1000) * perSecond;
    this.#left = Math.min(burst, this.#left + refill);
    this.#filledMs = nowMs;
  }
}
