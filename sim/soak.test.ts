import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { Soak } from "./soak.ts";

const PROGRAM = join(import.meta.dirname, "soak.ts");

test("thirty days of work leave the heap, listeners, timers and records where they were", async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", PROGRAM]);
  t.diagnostic(stdout);
  const { before, after } = JSON.parse(stdout) as Soak;
  for (const [prefix, count] of Object.entries(after.records)) {
    const allowed = 1.05 * (before.records[prefix] ?? 0) + 2;
    assert.ok(count <= allowed, `${before.records[prefix]} records below ${prefix}/ became ${count}`);
  }
  assert.equal(after.listeners, before.listeners);
  assert.ok(after.timers <= before.timers + 2, `${before.timers} timers became ${after.timers}`);
  // Compiled code and the shapes of objects settle late; a leak of 4 kB for each of 576 changes fails.
  assert.ok(after.heapBytes < before.heapBytes + 2_000_000, `${before.heapBytes} became ${after.heapBytes}`);
});
