import assert from "node:assert/strict";
import { test } from "node:test";
import { scanContractTexts, scanHashTexts, scanMarkdownTexts, scanSourceTexts } from "./scan-texts.ts";

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

test("finds the sentences among the strings of a test file", () => {
  const source = 'test("adds two numbers", () => equal(sum(), "key", "the sum is right"));';
  assert.deepEqual(
    scanSourceTexts("a.test.ts", source).map(({ kind, text }) => [kind, text]),
    [
      ["test-title", "adds two numbers"],
      ["string", "the sum is right"],
    ],
  );
});

test("finds the comments of a contract, with those above declarations as doc comments", () => {
  const source =
    'syntax = "proto3";\n\n// A pod\n// of a node.\nmessage Pod {\n  string name = 1; // Its name.\n}\n';
  assert.deepEqual(
    scanContractTexts("a.proto", source).map(({ kind, line, text }) => [kind, line, text]),
    [
      ["doc-comment", 3, "A pod of a node."],
      ["comment", 6, "Its name."],
    ],
  );
});

test("finds the comments of a script, and the prose of a YAML file", () => {
  const script = "#!/bin/sh\n# Starts\n# it.\nrun \"$#\" '# no comment' x#y # Runs.\n";
  assert.deepEqual(
    scanHashTexts("a.sh", script).map(({ kind, line, text }) => [kind, line, text]),
    [
      ["comment", 2, "Starts it."],
      ["comment", 4, "Runs."],
    ],
  );
  const yaml = 'a: b\nsummary: The disk is full\naction: "Free some space" # Now.\n';
  assert.deepEqual(
    scanHashTexts("a.yaml", yaml).map(({ kind, line, text }) => [kind, line, text]),
    [
      ["string", 2, "The disk is full"],
      ["comment", 3, "Now."],
      ["string", 3, "Free some space"],
    ],
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
