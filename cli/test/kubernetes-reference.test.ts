import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { END, renderKubernetes } from "./kubernetes-reference.ts";

test("documents the rules of every field in docs/reference/kubernetes.md, as written by cli/test/write-reference.ts", () => {
  const path = join(import.meta.dirname, "../../docs/reference/kubernetes.md");
  const text = readFileSync(path, "utf8");
  const rendered = renderKubernetes();
  assert.equal(text.slice(text.indexOf(rendered.slice(0, 40)), text.indexOf(END) + END.length), rendered);
});
