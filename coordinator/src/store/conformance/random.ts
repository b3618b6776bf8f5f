import { type Random as Choices, randomOf } from "@forage/common/random";

/** Seeded choices with chances in percent. */
export class Random {
  readonly #choices: Choices;

  constructor(seed: number) {
    this.#choices = randomOf(seed);
  }

  /** Returns a whole number from 0 up to, but not including, the limit. */
  below(limit: number): number {
    return this.#choices.below(limit);
  }

  chance(percent: number): boolean {
    return this.#choices.chance(percent / 100);
  }

  pick<T>(items: readonly T[]): T {
    return this.#choices.pick(items);
  }
}
