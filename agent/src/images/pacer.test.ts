import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pacer } from "./pacer.ts";

test("all callers together don't exceed the rate", async () => {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  const pace = pacer(1_000, clock);
  const { signal } = new AbortController();
  const sent: [string, number][] = [];
  const send = async (name: string) => {
    for (let i = 0; i < 3; i++) {
      await pace(500, signal);
      sent.push([name, clock.monotonicMs() - startMs]);
    }
  };
  const sending = Promise.all([send("a"), send("b")]);
  await clock.run(10_000);
  await sending;
  // 3,000 bytes take 3 s, and a quarter of a second may be sent in advance.
  assert.deepEqual(sent.at(-1)?.[1], 2_750);
  assert.equal(sent.length, 6);
});
