import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { AnswerWatch } from "./answer-watch.ts";

const INTERVAL_MS = 2_500;

test("every third heartbeat requests an answer", async () => {
  const { clock, watch } = aWatch();
  const requests = await requestsOf(7, () => clock.run(INTERVAL_MS), watch);
  assert.deepEqual(requests, [true, false, false, true, false, false, true]);
});

test("frequent heartbeats request an answer every 5 seconds at most", async () => {
  const { clock, watch } = aWatch();
  const requests = await requestsOf(12, () => clock.run(500), watch, 500);
  assert.deepEqual(requests, [true, ...Array(9).fill(false), true, false]);
});

test("silence is reported once, 10 seconds after a request", async () => {
  const { clock, watch, reports } = aWatch();
  watch.request(INTERVAL_MS);
  await clock.run(9_999);
  assert.equal(watch.request(INTERVAL_MS), false);
  assert.equal(reports(), 0);
  await clock.run(1);
  assert.equal(reports(), 1);
  await clock.run(60_000);
  assert.deepEqual([reports(), clock.pending], [1, 0]);
});

test("any message in time ends the wait", async () => {
  const { clock, watch, reports } = aWatch();
  watch.request(INTERVAL_MS);
  await clock.run(9_500);
  watch.received();
  await clock.run(60_000);
  assert.deepEqual([reports(), clock.pending], [0, 0]);
});

test("a closed watch has no timer and requests no answer", async () => {
  const { clock, watch, reports } = aWatch();
  watch.request(INTERVAL_MS);
  watch.close();
  assert.equal(clock.pending, 0);
  await clock.run(60_000);
  assert.equal(watch.request(INTERVAL_MS), false);
  assert.deepEqual([reports(), clock.pending], [0, 0]);
});

test("the time in which received messages are processed doesn't count", async () => {
  const host = { isBusy: true };
  const { clock, watch, reports } = aWatch(() => host.isBusy);
  watch.request(INTERVAL_MS);
  await clock.run(60_000);
  assert.equal(reports(), 0);
  host.isBusy = false;
  await clock.run(9_000);
  assert.equal(reports(), 0);
  await clock.run(1_000);
  assert.equal(reports(), 1);
});

function aWatch(isBusy = () => false) {
  const clock = new VirtualClock();
  let count = 0;
  const watch = new AnswerWatch({ clock, isBusy, onSilence: () => count++ });
  return { clock, watch, reports: () => count };
}

/** Returns for each of `count` heartbeats whether it requests an answer, which arrives at once. */
async function requestsOf(
  count: number,
  pause: () => Promise<unknown>,
  watch: AnswerWatch,
  intervalMs = INTERVAL_MS,
): Promise<boolean[]> {
  const requests: boolean[] = [];
  for (let at = 0; at < count; at++) {
    requests.push(watch.request(intervalMs));
    watch.received();
    await pause();
  }
  return requests;
}
