import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../clock.ts";
import { readBusyMs, UsageMeter, usedMemory } from "./usage-meter.ts";

test("processor use is the mean since the last call", async () => {
  const now = { atMs: 0, busyMs: 5_000 };
  const clock = { ...systemClock, monotonicMs: () => now.atMs };
  const meter = new UsageMeter({ clock, procDir: "/proc", readBusyMs: () => now.busyMs });
  assert.equal((await meter.read()).cpuMilli, 0);
  Object.assign(now, { atMs: 10_000, busyMs: 20_000 });
  const { cpuMilli, memoryBytes } = await meter.read();
  assert.equal(cpuMilli, 1_500);
  assert.ok(memoryBytes > 0);
  assert.equal((await meter.read()).cpuMilli, 0, "no time has passed");
  assert.ok(readBusyMs() > 0);
});

test("used memory is all memory that is not available", () => {
  assert.equal(usedMemory("MemTotal:     100 kB\nMemFree:  10 kB\nMemAvailable:   60 kB\n"), 40 * 1_024);
  assert.equal(usedMemory(""), 0);
});
