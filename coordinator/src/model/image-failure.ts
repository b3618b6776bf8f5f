/** The largest number of nodes that a message names. The rest is counted. */
const MAX_NAMED = 3;

/**
 * Reports whether the reason means that a container waits for its image. Another node may have the image, or reach the
 * registry.
 */
export function isImageFailure(reason: string): boolean {
  return /^(ErrImage|ImagePull)/.test(reason);
}

/** Returns ` (on node a)`, ` (on nodes a, b, c and 2 more)`, or an empty text without nodes. */
export function onNodes(nodes: Iterable<string>): string {
  const names = [...new Set(nodes)].filter((name) => name !== "").sort();
  if (names.length === 0) return "";
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  return ` (on node${names.length === 1 ? "" : "s"} ${names.slice(0, MAX_NAMED).join(", ")}${more})`;
}
