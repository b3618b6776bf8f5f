import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { Fleet, PodSpec } from "@forage/scheduler";
import { aPod } from "../../../test/support/entries.ts";
import { WaitQueue } from "./wait-queue.ts";

test("retries an unschedulable group after five minutes without any change", () => {
  const { queue, clock, due } = start("no");
  assert.deepEqual(due(), ["a"]);
  queue.failed("uid-a");
  clock.advance(299_999);
  assert.deepEqual(due(), []);
  assert.equal(queue.nextMs(), 1);
  clock.advance(1);
  assert.deepEqual(due(), ["a"]);
  queue.failed("uid-a");
  clock.advance(1);
  assert.deepEqual(due(), [], "the next five minutes have begun");
});

test("doubles the delay of searches after each failure, and resets it after a success", () => {
  const { queue, clock, due } = start("maybe");
  const waitsMs: number[] = [];
  const failAndWait = (): void => {
    queue.failed("uid-a");
    assert.deepEqual(due(), []);
    const waitMs = queue.nextMs() ?? 0;
    waitsMs.push(waitMs);
    clock.advance(waitMs);
    assert.deepEqual(due(), ["a"]);
  };
  for (let failure = 0; failure < 9; failure++) failAndWait();
  assert.deepEqual(waitsMs, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  queue.placed("uid-a");
  failAndWait();
  assert.equal(waitsMs.at(-1), 100);
});

test("retries a pod with a reservation once it certainly fits on another node", () => {
  const fleet = start("no");
  const { queue, due } = fleet;
  queue.failed("uid-a");
  queue.nominate("uid-a", "n1");
  assert.deepEqual(due(), []);
  fleet.chance.now = "maybe";
  assert.deepEqual(due(), [], "its place is worth more than a search");
  fleet.chance.now = "yes";
  assert.deepEqual(due(), ["a"]);
  assert.deepEqual(fleet.chance.ignored.at(-1), "n1");
});

type FitChance = "yes" | "no" | "maybe";

/** Returns a queue with one waiting pod. `now` is whether a change of the fleet may help it. */
function start(now: FitChance) {
  const clock = new VirtualClock();
  const chance = { now, ignored: [] as (string | undefined)[] };
  const fleet = {
    changes: 0,
    infeasibleClass: () => ({
      fitChance: (except?: string) => {
        chance.ignored.push(except);
        return chance.now;
      },
    }),
  } as unknown as Fleet;
  const queue = new WaitQueue({ fleet, monotonicMs: clock.monotonicMs });
  queue.set(aPod({ name: "a", node: "" }), {} as PodSpec, "group");
  const due = (): string[] => queue.takeDue().map(({ pod }) => pod.record.name);
  return { queue, clock, due, chance };
}
