import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const PROGRAM = join(import.meta.dirname, "many-agents.ts");

test("twenty real agents in one process connect and run sixty pods", async () => {
  const flags = ["--agents", "20", "--pods", "60", "--minutes", "2"];
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, ...flags]);
  const result = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  assert.deepEqual([result.agents, result.pods, result.minutes], [20, 60, 2]);
});
