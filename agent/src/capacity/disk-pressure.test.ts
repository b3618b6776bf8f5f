import assert from "node:assert/strict";
import { test } from "node:test";
import { type DiskSpace, diskPressure } from "./disk-pressure.ts";

const GIBIBYTE = 2 ** 30;

test("a disk is under pressure below 5 % of free space, until 7.5 % are free", () => {
  const steps: [availableGib: number, expected: boolean][] = [
    [20, false],
    [1.1, false],
    [0.9, true],
    [1.4, true],
    [1.6, false],
    [1.1, false],
  ];
  let pressure = false;
  for (const [availableGib, expected] of steps) {
    ({ pressure } = diskPressure(
      aDisk({ totalBytes: 20 * GIBIBYTE, availableBytes: availableGib * GIBIBYTE }),
      pressure,
    ));
    assert.equal(pressure, expected, `${availableGib} GiB`);
  }
});

test("a large disk needs 2 GiB of free space instead of 5 %", () => {
  const large = (availableGib: number) =>
    diskPressure(aDisk({ totalBytes: 8_000 * GIBIBYTE, availableBytes: availableGib * GIBIBYTE }), false);
  assert.equal(large(2.1).pressure, false);
  assert.deepEqual(large(1), {
    pressure: true,
    reason: "DiskFull",
    message: "1024Mi of disk are left, 2048Mi are needed",
  });
});

test("uses an operator's reserve if the disk is larger", () => {
  const left = (availableGib: number, reserveGib: number, before = false) =>
    diskPressure(aDisk({ availableBytes: availableGib * GIBIBYTE }), before, reserveGib * GIBIBYTE).pressure;
  assert.deepEqual(
    [left(11, 10), left(9, 10), left(14, 10, true), left(16, 10, true)],
    [false, true, true, false],
  );
  assert.equal(left(50, 40, true), false, "an empty disk is enough for any reserve");
});

test("counts inodes if the file system has a fixed number", () => {
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
