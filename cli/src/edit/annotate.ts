import type { Problem } from "../manifest/problem.ts";
import { plainText } from "../output/plain-text.ts";

/** The beginning of each line that describes a problem of the text. */
const MARK = "#! ";

/** Inserts each problem below its line, or the message at the top if there are no problems. */
export function annotate(text: string, message: string, problems: readonly Problem[]): string {
  if (problems.length === 0) return message.split("\n").map(markLine).join("") + text;
  const lines = text.split("\n");
  return lines
    .flatMap((line, index) => [
      line,
      ...problems
        .filter(({ position }) => Math.min(position.line, lines.length) === index + 1)
        .map((problem) => markLine(`${problem.path}: ${problem.message}`.replace(/^: /, "")).trimEnd()),
    ])
    .join("\n");
}

/** Removes the lines that `annotate` inserted. */
export function withoutAnnotations(text: string): string {
  return text
    .split("\n")
    .filter((line) => !line.startsWith(MARK))
    .join("\n");
}

function markLine(text: string): string {
  return `${MARK}${plainText(text)}\n`;
}
