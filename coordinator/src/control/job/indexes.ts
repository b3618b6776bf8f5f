/** Formats completed indexes as ranges, such as "0-3,5". */
export function formatIndexes(indexes: Iterable<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let from = 0; from < sorted.length; ) {
    let to = from;
    while (sorted[to + 1] === (sorted[to] ?? 0) + 1) to++;
    parts.push(from === to ? `${sorted[from]}` : `${sorted[from]}-${sorted[to]}`);
    from = to + 1;
  }
  return parts.join(",");
}

export function parseIndexes(text: string): Set<number> {
  const indexes = new Set<number>();
  for (const part of text === "" ? [] : text.split(",")) {
    const [from = 0, to = from] = part.split("-").map(Number);
    for (let index = from; index <= to; index++) indexes.add(index);
  }
  return indexes;
}
