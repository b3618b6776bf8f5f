/**
 * Returns the candidate most similar to the given text; undefined if none is similar enough. Case,
 * `-` and `_` are nearly ignored.
 */
export function suggest(written: string, candidates: Iterable<string>): string | undefined {
  const plain = simplify(written);
  let best: string | undefined;
  // Up to a third of the letters may differ: "replcas" is similar to "replicas", but "pods" is not
  // similar to "nodes".
  let bestDistance = Math.floor(Math.max(plain.length, 3) / 3) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(plain, simplify(candidate), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Returns ` (did you mean "x"?)`, or an empty text if no candidate is similar. */
export function didYouMean(written: string, candidates: Iterable<string>): string {
  const candidate = suggest(written, candidates);
  return candidate === undefined ? "" : ` (did you mean "${candidate}"?)`;
}

function simplify(text: string): string {
  return text.toLowerCase().replaceAll(/[-_]/g, "");
}

/**
 * Returns the number of insertions, deletions, replacements and swaps between two texts. Stops
 * counting at `limit`.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (beforeLast[j - 2] ?? cost) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return Math.min(last[b.length] ?? limit, limit);
}
