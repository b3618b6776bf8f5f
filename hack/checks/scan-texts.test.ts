import assert from "node:assert/strict";
import { test } from "node:test";
import { scanMarkdownTexts, scanSourceTexts } from "./scan-texts.ts";

const SOURCE = `/** Returns the sum.
 * It never rejects. */
export function sum() {
  // One comment
  // in two lines.
  const pattern = /"a b c" \\/\\/ no comment/;
  log.info("disk-full", { reason: \`the disk of \${name} is full\` });
  return "short key";
}
/* Plain. */
test("adds two numbers", () => {});
`;

test("finds comments, prose strings and test titles with their lines", () => {
  assert.deepEqual(
    scanSourceTexts("a.ts", SOURCE).map(({ kind, line, text }) => [kind, line, text]),
    [
      ["doc-comment", 1, "Returns the sum. It never rejects."],
      ["comment", 4, "One comment in two lines."],
      ["string", 7, "the disk of X is full"],
      ["comment", 10, "Plain."],
      ["test-title", 11, "adds two numbers"],
    ],
  );
});

test("takes a test file's strings for data, and its titles for texts", () => {
  const texts = scanSourceTexts("a.test.ts", 'test("adds two numbers", () => equal(sum(), "not a text"));');
  assert.deepEqual(
    texts.map(({ text }) => text),
    ["adds two numbers"],
  );
});

test("finds the lines of a page without its code", () => {
  const page = "# Title\n\n```sh\nrun nobody\n```\n\n- An item with `code` in it\n| cell |\n";
  assert.deepEqual(
    scanMarkdownTexts("a.md", page).map(({ line, text }) => [line, text.replaceAll(/ +/g, " ")]),
    [
      [1, "Title"],
      [7, "An item with in it"],
      [8, "cell |"],
    ],
  );
});
