/** A source of random numbers. */
export interface Random {
  /** Returns a number from 0 up to, but not including, 1. */
  next(): number;
  /** Returns a whole number from 0 up to, but not including, the limit. */
  below(limit: number): number;
  /** Returns one of the items. Throws if there is none. */
  pick<Item>(items: readonly Item[]): Item;
  /** Returns true with the probability, which is from 0 to 1. */
  chance(probability: number): boolean;
  /** Returns the items in another order. */
  shuffled<Item>(items: readonly Item[]): Item[];
}

const STEP = 0x6d2b79f5;
const RANGE = 2 ** 32;

/** Returns a source that gives the same numbers for the same seed (mulberry32). Not suitable for secrets. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + STEP) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / RANGE;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    pick: <Item>(items: readonly Item[]): Item => {
      if (items.length === 0) throw new RangeError("there is nothing to pick from");
      return items[below(items.length)] as Item;
    },
    chance: (probability) => next() < probability,
    shuffled: (items) =>
      items
        .map((item) => ({ item, at: next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item),
  };
}
