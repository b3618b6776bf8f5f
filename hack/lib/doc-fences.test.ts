import assert from "node:assert/strict";
import { test } from "node:test";
import { commandsOf, fencesOf } from "./doc-fences.ts";

test("finds fences with their lines, languages and files, without their indentation", () => {
  const page = [
    "Write `~/web.yaml`:",
    "",
    "   ```yaml",
    "   name: web",
    "   ```",
    "",
    "```",
    "any text",
    "```",
    "",
  ].join("\n");
  assert.deepEqual(fencesOf("a.md", page), [
    { page: "a.md", line: 3, language: "yaml", text: "name: web\n", file: "web.yaml" },
    { page: "a.md", line: 7, language: "", text: "any text\n", file: "web.yaml" },
  ]);
});

test("finds commands without comments, prompts and output", () => {
  const fence = { page: "a.md", line: 1, file: undefined };
  const text = "forage run a \\\n  --cpu 1   # one core\n\n# Then:\nls\n";
  assert.deepEqual(commandsOf({ ...fence, language: "sh", text }), ["forage run a --cpu 1", "ls"]);
  assert.deepEqual(commandsOf({ ...fence, language: "console", text: "$ forage why a\nit runs\n" }), [
    "forage why a",
  ]);
  assert.deepEqual(commandsOf({ ...fence, language: "text", text: "ls\n" }), []);
});
