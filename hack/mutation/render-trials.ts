import type { Trial } from "./try-changes.ts";

/** Returns one trial as a line. */
export function renderTrial({ change, verdict, durationMs }: Trial): string {
  const { path, line, before, after } = change;
  const result =
    verdict.type === "noticed" ? `noticed by ${verdict.by}` : `${verdict.type} ${verdict.files} files`;
  const to = after.trim() === "" ? "(left out)" : after.trim();
  return `${result}, ${Math.round(durationMs / 1000)} s: ${path}:${line}: ${before.trim()} → ${to}`;
}

/** Returns a table of the trials of each folder, and the changes that no test noticed. */
export function renderTrials(trials: readonly Trial[]): string {
  const rooms = Map.groupBy(trials, ({ change }) => change.path.split("/", 1)[0] ?? "");
  const rows = [...rooms].sort(([a], [b]) => (a < b ? -1 : 1)).map(([room, its]) => row(room, its));
  const left = trials.filter(({ verdict }) => verdict.type !== "noticed").map(renderTrial);
  return ["room            tried  noticed  survived  unfinished", ...rows, row("all", trials), ...left].join(
    "\n",
  );
}

function row(room: string, trials: readonly Trial[]): string {
  const count = (type: string): number => trials.filter(({ verdict }) => verdict.type === type).length;
  const cells = [
    [trials.length, 5],
    [count("noticed"), 7],
    [count("survived"), 8],
    [count("unfinished"), 10],
  ] as const;
  return [room.padEnd(14), ...cells.map(([value, width]) => String(value).padStart(width))].join("  ");
}
