import { randomOf } from "../../common/src/random.ts";
import { type Change, canBeParsed, findChanges, makeChange } from "./find-changes.ts";

export interface PlacedChange extends Change {
  /** Relative to the root. */
  readonly path: string;
}

/**
 * Returns changes of random lines. Each line of all sources that can be changed has the same probability, and none is
 * chosen twice. The same seed chooses the same changes of the same sources.
 */
export function sampleChanges(
  sources: ReadonlyMap<string, string>,
  { seed, count }: { readonly seed: number; readonly count: number },
): PlacedChange[] {
  const random = randomOf(seed);
  const lines = [...sources].flatMap(([path, source]) =>
    [...Map.groupBy(findChanges(source), ({ line }) => line).values()].map((changes) => ({
      ...{ path, source, changes },
    })),
  );
  const chosen: PlacedChange[] = [];
  for (const { path, source, changes } of random.shuffled(lines)) {
    if (chosen.length >= count) break;
    const change = random.shuffled(changes).find((it) => canBeParsed(makeChange(source, it)));
    if (change !== undefined) chosen.push({ path, ...change });
  }
  return chosen;
}
