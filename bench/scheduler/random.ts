/** Seeded choices, so that every run sees the same pods. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 2654435761) >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  pick<T>(from: readonly T[]): T {
    const item = from[Math.floor(this.next() * from.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  shuffled<T>(from: readonly T[]): T[] {
    const items = from.map((item) => ({ item, key: this.next() }));
    return items.sort((a, b) => a.key - b.key).map(({ item }) => item);
  }
}
