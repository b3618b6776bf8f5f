import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { repeatResize } from "./repeat-resize.ts";

test("a new size is signalled again a few times, from the last change on, until the terminal closes", () => {
  const clock = new VirtualClock();
  const atMs: number[] = [];
  const sizes = repeatResize(clock, () => atMs.push(clock.monotonicMs()));
  clock.advance(60_000);
  assert.deepEqual(atMs, []);
  const beganMs = clock.monotonicMs();
  sizes.resized();
  clock.advance(50);
  sizes.resized();
  clock.advance(60_000);
  assert.deepEqual(
    atMs.map((ms) => ms - beganMs),
    [150, 450, 1_450, 4_450, 14_450],
  );
  sizes.resized();
  sizes.close();
  clock.advance(60_000);
  assert.equal(atMs.length, 5);
});
