import assert from "node:assert/strict";
import { test } from "node:test";
import { type DiskSpace, diskPressure } from "./disk-pressure.ts";

const GIBIBYTE = 2 ** 30;

test("a disk is under pressure below a tenth, and no longer above three twentieths", () => {
  const steps: [availableGib: number, expected: boolean][] = [
    [20, false],
    [5.1, false],
    [4.9, true],
    [7.4, true],
    [7.6, false],
    [5.1, false],
  ];
  let pressure = false;
  for (const [availableGib, expected] of steps) {
    ({ pressure } = diskPressure(aDisk({ availableBytes: availableGib * GIBIBYTE }), pressure));
    assert.equal(pressure, expected, `${availableGib} GiB`);
  }
});

test("a large disk needs ten gibibytes, not a tenth", () => {
  const large = (availableGib: number) =>
    diskPressure(aDisk({ totalBytes: 8_000 * GIBIBYTE, availableBytes: availableGib * GIBIBYTE }), false);
  assert.equal(large(11).pressure, false);
  assert.deepEqual(large(9), {
    pressure: true,
    reason: "DiskFull",
    message: "9216Mi of disk are left, 10240Mi are needed",
  });
});

test("inodes count too, where there is a number of them", () => {
  const few = aDisk({ totalInodes: 1_000, availableInodes: 40 });
  assert.equal(diskPressure(few, false).reason, "InodesUsedUp");
  assert.equal(diskPressure({ ...few, availableInodes: 60 }, false).pressure, false);
  assert.equal(diskPressure({ ...few, availableInodes: 60 }, true).pressure, true);
  assert.equal(diskPressure(aDisk({ totalInodes: 0, availableInodes: 0 }), true).pressure, false);
});

function aDisk(change: Partial<DiskSpace>): DiskSpace {
  return {
    totalBytes: 50 * GIBIBYTE,
    availableBytes: 40 * GIBIBYTE,
    totalInodes: 1_000,
    availableInodes: 900,
    ...change,
  };
}
