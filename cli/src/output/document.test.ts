import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { renderDocument } from "./document.ts";

test("renders scripts as literal blocks in YAML, even with long lines", () => {
  const long = `echo ${"word ".repeat(40)}end`;
  const value = { command: ["sh", "-c", `set -e\n${long}\nexit 0\n`], empty: "", tail: "a\n\nb" };
  const text = renderDocument("yaml", value);
  assert.match(text, /^ {2}- \|\n {4}set -e\n {4}echo .* end\n {4}exit 0\n/m);
  assert.match(text, /^tail: \|-\n {2}a\n\n {2}b\n/m);
  assert.deepEqual(parse(text), value);
});

test("keeps a long line of text on one line", () => {
  const value = { message: "word ".repeat(60).trim() };
  assert.equal(renderDocument("yaml", value).split("\n").length, 2);
  assert.deepEqual(parse(renderDocument("yaml", value)), value);
});

test("ends each document with a line feed", () => {
  for (const format of ["json", "yaml"] as const) assert.match(renderDocument(format, []), /^\[\]\n$/);
});
