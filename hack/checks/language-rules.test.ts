import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findMarks } from "./language-rules.ts";
import { readTexts, type TextKind } from "./scan-texts.ts";

/**
 * The maximum number of marked texts of each kind. These counts must only decrease: a change that adds a mark has to
 * rewrite the text.
 */
const MAX_MARKED: Readonly<Record<TextKind, number>> = {
  "doc-comment": 0,
  comment: 0,
  string: 0,
  "test-title": 0,
  docs: 0,
};

const marksOf = (text: string) =>
  findMarks({ path: "a.ts", line: 1, kind: "comment", text }).map(({ rule }) => rule);

test("finds each habit once in a text", () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["What the link tells of the host.", ["headless clause", "software as a person"]],
    ["Whoever drains a node.", ["headless clause"]],
    ["What does the node report?", []],
    ["Of the pod that asks.", ["genitive fragment"]],
    ["Reads the file anew.", ["archaic word"]],
    ["Returns what is to be stopped.", ["is to be"]],
    ["Waits so that it does not block.", ["double negative"]],
    ["The node hears of the route.", ["software as a person"]],
    ["Tell all that is known of a node", ["imperative of speech"]],
    ["no pod is named; say which", ["imperative of speech"]],
    ["Look up the address.", []],
    ["Returns the pods that run on a node.", []],
  ];
  for (const [text, rules] of cases) assert.deepEqual(marksOf(text), rules, text);
});

test("finds doc comments without a main clause", () => {
  const marked = (text: string) =>
    findMarks({ path: "a.ts", line: 1, kind: "doc-comment", text }).map(({ rule }) => rule);
  for (const text of [
    "How many pods there are.",
    "Where the log is.",
    "Since when it is lost.",
    "For how long it runs.",
    "When the next start is due.",
    "Of host ports.",
  ])
    assert.deepEqual(marked(text), ["headless doc comment"], text);
  for (const text of [
    "When set, only this node may join.",
    "Whether the node is ready.",
    "The number of pods.",
  ])
    assert.deepEqual(marked(text), [], text);
  assert.deepEqual(marksOf("How many pods there are."), []);
});

test("finds titles of tests without a main clause", () => {
  const marked = (text: string) =>
    findMarks({ path: "a.test.ts", line: 1, kind: "test-title", text }).map(({ rule }) => rule);
  assert.deepEqual(marked("what is sealed opens"), ["headless title"]);
  assert.deepEqual(marked("a sealed value opens in its place only"), []);
});

test("ignores words in code", () => {
  assert.deepEqual(marksOf("Compares `wanted` with `held`."), []);
});

test("the code base gains no marks of unclear English", () => {
  const texts = readTexts(join(import.meta.dirname, "..", ".."));
  const marked = texts.filter((text) => findMarks(text).length > 0);
  for (const [kind, most] of Object.entries(MAX_MARKED)) {
    const found = marked.filter((text) => text.kind === kind);
    const recent = found.slice(0, 5).map(({ path, line, text }) => `${path}:${line}: ${text}`);
    assert.ok(
      found.length <= most,
      `${found.length} texts of kind ${kind} have marks, ${most} are allowed; hack/checks/list-marks.ts prints them all, for example\n${recent.join("\n")}`,
    );
  }
});
