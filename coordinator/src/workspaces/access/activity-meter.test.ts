import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ActivityMeter } from "./activity-meter.ts";

function setUp() {
  const clock = new VirtualClock();
  const reports: string[] = [];
  const meter = new ActivityMeter({ markActive: (id) => void reports.push(id) }, clock);
  return { clock, reports, meter };
}

test("reports a workspace at most once in 30 s, regardless of the number of requests", () => {
  const { clock, reports, meter } = setUp();
  for (let request = 0; request < 100; request++) meter.begin("i1")();
  assert.deepEqual(reports, ["i1"]);
  clock.advance(30_000);
  meter.begin("i1")();
  assert.deepEqual(reports, ["i1", "i1"]);
});

test("reports a workspace while a connection is open, and stops when the connection closes", () => {
  const { clock, reports, meter } = setUp();
  const end = meter.begin("i1");
  clock.advance(90_000);
  assert.equal(reports.length, 4);
  end();
  end();
  assert.equal(meter.openOf("i1"), 0);
  clock.advance(300_000);
  assert.equal(reports.length, 4);
});
