import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DRIVER_SCHEMA } from "./driver-schema.ts";
import { optionTable } from "./option-table.ts";
import { TASK_SCHEMA } from "./task-schema.ts";

const GUIDE = readFileSync(join(import.meta.dirname, "../../../../docs/nomad.md"), "utf8");

test("docs/nomad.md has the table of every option that the schemas define", () => {
  for (const options of [TASK_SCHEMA, DRIVER_SCHEMA]) {
    const table = optionTable(options);
    assert.ok(GUIDE.includes(`\n${table}\n`), `docs/nomad.md lacks this table:\n${table}`);
  }
});
