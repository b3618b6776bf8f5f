import assert from "node:assert/strict";
import { it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { SweepPace } from "./sweep-pace.ts";

it("visits a twentieth of the connections of a large server that has time to spare", () => {
  const pace = new SweepPace(() => 0.1);
  assert.deepEqual(
    [0, 90, 5_000, 16_384].map((connections) => pace.visits(connections)),
    [100, 100, 250, 820],
  );
});

it("visits more connections while the process is busy", () => {
  let utilization = 0.9;
  const pace = new SweepPace(() => utilization);
  assert.equal(pace.visits(5_000), 1_000);
  utilization = 0.2;
  assert.equal(pace.visits(5_000), 250);
});

it("counts the time since the last check", async () => {
  // The event loop must have started.
  await delay(1);
  const pace = new SweepPace();
  pace.visits(5_000);
  const endMs = performance.now() + 50;
  while (performance.now() < endMs);
  assert.equal(pace.visits(5_000), 1_000);
});
