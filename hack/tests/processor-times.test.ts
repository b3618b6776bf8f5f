import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { appendProcessorTime, readProcessorTimes } from "./processor-times.ts";

test("the processor time of a file includes its process and the children that have ended, over all its processes", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-processor-times-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "times");
  assert.deepEqual(readProcessorTimes(file), new Map());

  appendProcessorTime(file, "/a.test.ts");
  const first = readProcessorTimes(file).get("/a.test.ts") ?? 0;
  assert.ok(first > 0);
  const busy = "const end = process.cpuUsage().user + 300_000; while (process.cpuUsage().user < end);";
  execFileSync(process.execPath, ["-e", busy]);
  appendProcessorTime(file, "/b.test.ts");
  appendProcessorTime(file, "/a.test.ts");

  const times = readProcessorTimes(file);
  assert.ok((times.get("/b.test.ts") ?? 0) >= first + 300);
  assert.ok((times.get("/a.test.ts") ?? 0) >= 2 * first + 300);
});
