import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { Soak } from "./soak.ts";

const PROGRAM = join(import.meta.dirname, "soak.ts");

test("thirty days of work leave the heap, listeners, timers and records at the same size", async (t) => {
  // A function that V8 forgets may be the last user of its module's source, of up to 4 MB.
  const flags = ["--expose-gc", "--no-flush-bytecode"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM]);
  t.diagnostic(stdout);
  const { before, after } = JSON.parse(stdout) as Soak;
  for (const [prefix, count] of Object.entries(after.records)) {
    const allowed = 1.05 * (before.records[prefix] ?? 0) + 2;
    assert.ok(count <= allowed, `${before.records[prefix]} records below ${prefix}/ became ${count}`);
  }
  assert.equal(after.listeners, before.listeners);
  assert.deepEqual(after.subscribers, before.subscribers);
  assert.ok(after.archives <= before.archives + 10, `${before.archives} archives became ${after.archives}`);
  assert.ok(after.timers <= before.timers + 2, `${before.timers} timers became ${after.timers}`);
  // Types of values are recorded late, and the scheduler fills its limited cache of pod classes, of which each workspace has its own. A
  // leak of 3 kB for each of 576 changes, or of 15 kB for each of 115 workspaces, fails.
  const grown = after.objectBytes - before.objectBytes;
  assert.ok(grown < 3_400_000, `${before.objectBytes} bytes of objects became ${after.objectBytes}`);
});
