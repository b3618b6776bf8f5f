import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { TaskImages, type TaskImagesOptions } from "./task-images.ts";

const DELAY_MS = 180_000;

test("removes an image once, some time after its last task, unless a task uses it again", async () => {
  const time = new VirtualClock();
  let cancelled = 0;
  const clock = {
    ...{ nowMs: time.nowMs, monotonicMs: time.monotonicMs },
    schedule: (delayMs: number, run: () => void) => {
      const cancel = time.schedule(delayMs, run);
      return () => {
        cancelled++;
        cancel();
      };
    },
  };
  const removed: string[] = [];
  const images = new TaskImages({
    runtime: { removeImage: async (image: string) => void removed.push(image) },
    options: { gc: { image: true, imageDelayMs: DELAY_MS } },
    clock,
    log: () => {},
  } as unknown as TaskImagesOptions);
  images.hold("app:1", "a");
  images.hold("app:1", "b");
  images.releaseAll("a");
  await time.run(DELAY_MS);
  assert.deepEqual(removed, []);
  images.releaseAll("b");
  await time.run(DELAY_MS - 1);
  images.hold("app:1", "c");
  await time.run(DELAY_MS);
  assert.deepEqual([removed, cancelled], [[], 1]);
  images.releaseAll("c");
  await time.run(DELAY_MS);
  assert.deepEqual(removed, ["app:1"]);
  images.close();
  assert.equal(cancelled, 1, "nothing is kept of a removal that is over");
});
