import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { configReference } from "./support/config-reference.ts";

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

test("matches coordinator.yaml's reference, as written by node coordinator/test/write-config-reference.ts", () => {
  assert.equal(text("../../docs/reference/coordinator.md"), configReference(text("../src/config.ts")));
});

test("describes every key in the reference", () => {
  const rows = configReference(text("../src/config.ts"))
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  assert.ok(rows.length > 40);
  assert.deepEqual(
    rows.filter((row) => row.endsWith("|  |")),
    [],
  );
});
