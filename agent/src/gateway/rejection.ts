const TEXT_MAX = 400;

/** Returns the reason for which Envoy rejected a file, or the last line of its log. One line of bounded length. */
export function rejectionIn(words: string): string {
  const lines = words.split("\n").filter((line) => line.trim() !== "");
  const refusals = lines.flatMap((line) => /config update rejected: (.*)$/.exec(line)?.[1] ?? []);
  const last = refusals.at(-1) ?? withoutHead(lines.at(-1) ?? "Envoy gave no reason");
  return last.slice(0, TEXT_MAX);
}

/** Without time, thread, level and place in Envoy's sources. */
function withoutHead(line: string): string {
  return line.replace(/^(\[[^\]]*\]\s*)+/, "");
}
