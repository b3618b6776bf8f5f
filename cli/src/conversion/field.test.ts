import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSource } from "../manifest/document.ts";
import { Field } from "./field.ts";

test("a document whose aliases stand for too many values is read up to the limit only", () => {
  const list = (item: string): string => `[${Array.from({ length: 100 }, () => item).join(", ")}]`;
  // A million values.
  const text = `{a: &a ${list("x")}, b: &b ${list("*a")}, c: ${list("*b")}}`;
  const problems: string[] = [];
  const [document] = parseSource({ name: "compose.yaml", text }).documents;
  assert.ok(document);
  const root = new Field(document.root, "", {
    ...{ document, env: {}, lose: () => {} },
    fail: ({ message }) => problems.push(message),
  });
  const valuesOf = (field: Field): number =>
    field.kind === "list" ? field.items().reduce((sum, item) => sum + valuesOf(item), 1) : 1;
  const values = root.entries().reduce((sum, [, field]) => sum + valuesOf(field), 0);
  assert.deepEqual(problems, ["the document stands for more than 200000 values"]);
  assert.ok(values < 201_000, `${values} values were read`);
});
