const TEXT_MAX = 400;

/** Returns the reason for which Envoy rejected a file, or the last line of its log. One line of bounded length. */
export function rejectionIn(words: string): string {
  const lines = words.split("\n").filter((line) => line.trim() !== "");
  const refusals = lines.flatMap((line) => /config update rejected: (.*)$/.exec(line)?.[1] ?? []);
  const last = refusals.at(-1) ?? withoutHead(lines.at(-1) ?? "Envoy gave no reason");
  return last.slice(0, TEXT_MAX);
}

/** Returns the message without time, thread, level and source position of Envoy's log format. */
function withoutHead(line: string): string {
  return line.replace(/^(\[[^\]]*\]\s*)+/, "");
}
