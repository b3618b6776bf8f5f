/** A seeded source of choices: the same seed, the same choices. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed * 2654435761) >>> 0;
  }

  /** Returns a number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** Returns an integer in [0, end). */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const item = from[this.below(from.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  /** Up to `most` of them, in their order, none twice. */
  some<T>(from: readonly T[], most: number): T[] {
    const wanted = this.below(most + 1);
    return from.filter(() => this.next() < wanted / Math.max(1, from.length));
  }

  shuffled<T>(from: readonly T[]): T[] {
    const items = [...from];
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const [a, b] = [items[i], items[j]];
      if (a !== undefined && b !== undefined) [items[i], items[j]] = [b, a];
    }
    return items;
  }
}
