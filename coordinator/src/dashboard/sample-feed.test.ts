import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { settled } from "../../test/support/until.ts";
import type { PresentView } from "./history-view.ts";
import { sampleFeed } from "./sample-feed.ts";

test("sends all samples first, then changed values soon, and unchanged values at intervals", async () => {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const over = new AbortController();
  let cpu: number | null = 5;
  const read = (): PresentView<"cpu"> => ({
    ...{ startMs: 0, intervalMs: 60_000, series: { cpu: [1, 2] } },
    ...{ nowMs: clock.nowMs(), now: { cpu } },
  });
  const feed = sampleFeed(read, clock, over.signal);
  const taken: [number, unknown][] = [];
  const reading = (async () => {
    for await (const text of feed) taken.push([clock.nowMs() - 1_000_000, JSON.parse(text)]);
  })();
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      await settled();
      clock.advance(1_000);
    }
    await settled();
  };
  await pass(3);
  assert.deepEqual(taken, [[0, { ...read(), nowMs: 1_000_000 }]]);
  cpu = 6;
  await pass(2);
  assert.deepEqual(taken.at(-1), [4_000, { nowMs: 1_004_000, now: { cpu: 6 } }]);
  await pass(9);
  assert.deepEqual([taken.length, taken.at(-1)?.[0]], [3, 14_000]);
  over.abort();
  await reading;
  assert.equal(clock.pending, 0);
});
