import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DRIVER_SCHEMA } from "./driver-schema.ts";
import { optionTable, refusedTable } from "./option-table.ts";
import { TASK_SCHEMA } from "./task-schema.ts";

const GUIDE = readFileSync(join(import.meta.dirname, "../../../../docs/nomad.md"), "utf8");

test("the tables in docs/nomad.md list every option of the schemas and every refused option", () => {
  for (const options of [TASK_SCHEMA, DRIVER_SCHEMA]) {
    for (const table of [optionTable(options), refusedTable(options)])
      assert.ok(GUIDE.includes(`\n${table}\n`), `docs/nomad.md lacks this table:\n${table}`);
  }
});
