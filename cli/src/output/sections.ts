import type { Paint } from "./paint.ts";
import { displayWidth, plainText } from "./plain-text.ts";

/**
 * A title with its value. Entries with an empty value are omitted. A value of several lines is
 * indented below the title.
 */
export type Entry = readonly [title: string, value: string];

export function renderEntries(entries: readonly Entry[], paint: Paint, indent = ""): string {
  const filled = entries.filter(([, value]) => value !== "");
  const width = Math.max(0, ...filled.map(([title]) => displayWidth(title)));
  return filled.map(([title, value]) => renderEntry(title, value, width, paint, indent)).join("");
}

/** Returns `Pods:` and its body, or an empty text if the body is empty. */
export function renderSection(title: string, body: string, paint: Paint): string {
  if (body === "") return "";
  return `\n${paint("strong", `${title}:`)}\n${body
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}\n`)
    .join("")}`;
}

function renderEntry(title: string, value: string, width: number, paint: Paint, indent: string): string {
  const [first = "", ...rest] = plainText(value, { lines: true }).trimEnd().split("\n");
  const head = `${indent}${paint("faint", `${title}:`)}${" ".repeat(width - displayWidth(title) + 2)}`;
  if (rest.length === 0) return `${head}${first}\n`;
  return `${head.trimEnd()}\n${[first, ...rest].map((line) => `${indent}    ${line}\n`).join("")}`;
}
