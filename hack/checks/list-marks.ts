#!/usr/bin/env node
import { join } from "node:path";
import { findMarks } from "./language-rules.ts";
import { readTexts } from "./scan-texts.ts";

// Prints every text with marks of unclear English, and the counts. Arguments limit the output to paths that contain one
// of them.
const [, , ...patterns] = process.argv;
const texts = readTexts(join(import.meta.dirname, "..", "..")).filter(
  ({ path }) => patterns.length === 0 || patterns.some((pattern) => path.includes(pattern)),
);
const counts = new Map<string, { texts: number; marked: number }>();
for (const text of texts) {
  const marks = findMarks(text);
  const count = counts.get(text.kind) ?? { texts: 0, marked: 0 };
  counts.set(text.kind, { texts: count.texts + 1, marked: count.marked + (marks.length > 0 ? 1 : 0) });
  if (marks.length === 0) continue;
  const found = marks.map(({ rule, match }) => `${rule} "${match.trim()}"`).join(", ");
  console.log(`${text.path}:${text.line} ${text.kind} [${found}]\n    ${text.text}`);
}
console.table(Object.fromEntries(counts));
