import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";
import { LogMaintenance } from "./log-maintenance.ts";

function given() {
  const timers = new Set<() => void>();
  const dependencies = { pressed: false, failing: false, looks: 0, errors: 0 };
  const upkeep = new LogMaintenance({
    clock: {
      ...systemClock,
      schedule(_, run) {
        timers.add(run);
        return () => timers.delete(run);
      },
    },
    rescue: {
      run: async () => {
        dependencies.looks += 1;
        if (dependencies.failing) throw new Error("no /proc");
      },
    },
    containers: () => [],
    pressed: () => dependencies.pressed,
    onError: () => {
      dependencies.errors += 1;
    },
  });
  const fire = async () => {
    for (const run of [...timers]) {
      timers.delete(run);
      run();
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { upkeep, dependencies, timers, fire };
}

test("checks logs only after the disk may have been full, and while it is full", async () => {
  const { upkeep, dependencies, timers, fire } = given();
  assert.equal(timers.size, 0);
  dependencies.pressed = true;
  upkeep.suspect();
  upkeep.suspect();
  assert.equal(timers.size, 1);
  await fire();
  dependencies.failing = true;
  await fire();
  assert.deepEqual([dependencies.looks, dependencies.errors, timers.size], [2, 1, 1]);
  dependencies.pressed = false;
  await fire();
  assert.deepEqual([dependencies.looks, timers.size], [3, 0]);
});

test("a closed instance checks nothing more", async () => {
  const { upkeep, dependencies, timers, fire } = given();
  upkeep.suspect();
  upkeep.close();
  upkeep.suspect();
  await fire();
  assert.deepEqual([dependencies.looks, timers.size], [0, 0]);
});
