import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";
import { LogUpkeep } from "./log-upkeep.ts";

function given() {
  const timers = new Set<() => void>();
  const world = { pressed: false, failing: false, looks: 0, errors: 0 };
  const upkeep = new LogUpkeep({
    clock: {
      ...systemClock,
      after(_, run) {
        timers.add(run);
        return () => timers.delete(run);
      },
    },
    rescue: {
      run: async () => {
        world.looks += 1;
        if (world.failing) throw new Error("no /proc");
      },
    },
    containers: () => [],
    pressed: () => world.pressed,
    onError: () => {
      world.errors += 1;
    },
  });
  const fire = async () => {
    for (const run of [...timers]) {
      timers.delete(run);
      run();
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { upkeep, world, timers, fire };
}

test("logs are looked at only after the disk may have been full, and for as long as it is", async () => {
  const { upkeep, world, timers, fire } = given();
  assert.equal(timers.size, 0);
  world.pressed = true;
  upkeep.suspect();
  upkeep.suspect();
  assert.equal(timers.size, 1);
  await fire();
  world.failing = true;
  await fire();
  assert.deepEqual([world.looks, world.errors, timers.size], [2, 1, 1]);
  world.pressed = false;
  await fire();
  assert.deepEqual([world.looks, timers.size], [3, 0]);
});

test("a closed one looks no more", async () => {
  const { upkeep, world, timers, fire } = given();
  upkeep.suspect();
  upkeep.close();
  upkeep.suspect();
  await fire();
  assert.deepEqual([world.looks, timers.size], [0, 0]);
});
