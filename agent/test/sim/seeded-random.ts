import { randomOf } from "@forage/common/random";

/** Returns numbers in [0, 1), the same for the same seed. */
export function seededRandom(seed: number): () => number {
  return randomOf(seed).next;
}
