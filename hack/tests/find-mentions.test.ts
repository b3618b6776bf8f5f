import assert from "node:assert/strict";
import { test } from "node:test";
import { findMentions } from "./find-mentions.ts";

const KNOWN = new Set([
  "agent/src/main.ts",
  "agent/src/driver/main.ts",
  "agent/test/answer.ts",
  "agent/test/kinds/a.ts",
  "agent/test/kinds/b.ts",
  "agent/test/kinds/deep/c.ts",
  "agent/test/link.test.ts",
]);

const found = (text: string): string[] => findMentions("agent/test/link.test.ts", text, KNOWN);

test("finds programs that are named relative to the module, in one text or in pieces", () => {
  assert.deepEqual(found('const main = join(import.meta.dirname, "../src/main.ts");'), ["agent/src/main.ts"]);
  assert.deepEqual(found('join(import.meta.dirname, "..", "src",\n "driver", "main.ts")'), [
    "agent/src/driver/main.ts",
  ]);
  assert.deepEqual(found('new URL("./answer.ts", import.meta.url)'), ["agent/test/answer.ts"]);
});

test("finds modules that are named from the root", () => {
  assert.deepEqual(found('const PROGRAMS = { agent: "agent/src/main.ts" };'), ["agent/src/main.ts"]);
});

test("finds each module of a folder whose name is computed by an expression", () => {
  assert.deepEqual(found(`\`kinds/\${name}.ts\``), ["agent/test/kinds/a.ts", "agent/test/kinds/b.ts"]);
});

test("ignores names of other files and the module's own name", () => {
  assert.deepEqual(found('write("view.ts"); test("link.test.ts");'), []);
});
