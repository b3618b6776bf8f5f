import assert from "node:assert/strict";
import { test } from "node:test";
import { annotate, withoutAnnotations } from "./annotate.ts";

const TEXT = "# head\na: 1\nb: 2\n";
const at = (line: number, path: string, message: string) => ({
  position: { file: "a.yaml", line, column: 1 },
  path,
  message,
});

test("inserts problems below their lines, and removes them again", () => {
  const problems = [at(2, "a", "is odd"), at(3, "", "is\nevil"), at(9, "z", "is beyond")];
  const text = annotate(TEXT, "not used", problems);
  assert.equal(text, "# head\na: 1\n#! a: is odd\nb: 2\n#! is\\nevil\n\n#! z: is beyond");
  assert.equal(withoutAnnotations(text), TEXT);
});

test("inserts a message without a position at the top", () => {
  const text = annotate(TEXT, "a limit\nis reached", []);
  assert.equal(text, `#! a limit\n#! is reached\n${TEXT}`);
  assert.equal(withoutAnnotations(text), TEXT);
});
