import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { configReference } from "./support/config-reference.ts";

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

test("the reference of coordinator.yaml is current: node coordinator/test/write-config-reference.ts", () => {
  assert.equal(text("../../docs/reference/coordinator.md"), configReference(text("../src/config.ts")));
});

test("the reference has a meaning for every key", () => {
  const rows = configReference(text("../src/config.ts"))
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  assert.ok(rows.length > 40);
  assert.deepEqual(
    rows.filter((row) => row.endsWith("|  |")),
    [],
  );
});
