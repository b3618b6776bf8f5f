import assert from "node:assert/strict";
import { test } from "node:test";
import { paintFor, plain } from "./paint.ts";
import { displayWidth, plainText } from "./plain-text.ts";
import { type Column, renderTable } from "./table.ts";

interface Row {
  readonly name: string;
  readonly count: number;
  readonly why?: string;
}
const columns: readonly Column<Row>[] = [
  { title: "NAME", value: ({ name }) => name, style: () => "good" },
  { title: "COUNT", value: ({ count }) => String(count), alignRight: true },
  { title: "DETAIL", value: ({ name }) => name.toUpperCase(), wide: true },
  { title: "WHY", value: ({ why }) => why ?? "", whenFilled: true },
];

test("aligns columns, marks empty cells and omits empty columns", () => {
  const text = renderTable(
    columns,
    [
      { name: "a", count: 1 },
      { name: "long-name", count: 100 },
    ],
    { wide: false, paint: plain },
  );
  assert.equal(text, "NAME       COUNT\na              1\nlong-name    100\n");
});

test("shows more columns with wide, and no spaces at the ends of lines", () => {
  const text = renderTable(
    columns,
    [
      { name: "a", count: 1, why: "x" },
      { name: "bb", count: 2 },
    ],
    { wide: true, paint: plain },
  );
  assert.equal(text, "NAME  COUNT  DETAIL  WHY\na         1  A       x\nbb        2  BB      -\n");
});

test("aligns coloured cells", () => {
  const text = renderTable(columns, [{ name: "a", count: 1 }], {
    wide: false,
    paint: (_style, cell) => `<${cell}>`,
  });
  assert.equal(text, "NAME  COUNT\n<a>         1\n");
});

test("counts wide characters as two columns", () => {
  const text = renderTable(
    columns,
    [
      { name: "日本", count: 1 },
      { name: "e\u0301", count: 2 },
    ],
    { wide: false, paint: plain },
  );
  assert.equal(text, "NAME  COUNT\n日本      1\ne\u0301         2\n");
  assert.equal(displayWidth("🚀a"), 3);
});

test("escapes control characters in text from other sources", () => {
  assert.equal(plainText("\u001b[2Ja\rb\nc\td\u202ee\u009b"), "\\x1b[2Ja\\x0db\\nc d\\u202ee\\x9b");
  assert.equal(plainText("a\nb", { lines: true }), "a\nb");
});

test("uses colours only for terminals that support them", () => {
  const terminal = Object.assign(Object.create(null), { isTTY: true });
  assert.notEqual(paintFor(terminal, {}, false)("bad", "x"), "x");
  assert.equal(paintFor(terminal, { NO_COLOR: "1" }, false)("bad", "x"), "x");
  assert.notEqual(paintFor(terminal, { NO_COLOR: "" }, false)("bad", "x"), "x");
  assert.equal(paintFor(terminal, { TERM: "dumb" }, false)("bad", "x"), "x");
  assert.equal(paintFor(terminal, {}, true)("bad", "x"), "x");
  assert.equal(paintFor(Object.assign(Object.create(null), {}), {}, false)("bad", "x"), "x");
});
