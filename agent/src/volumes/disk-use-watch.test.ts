import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { DiskUseWatch } from "./disk-use-watch.ts";

function aWatch(walkMs: number, usedBytes: () => number) {
  const clock = new VirtualClock();
  const beganMs = clock.nowMs();
  const walks: string[] = [];
  const exceeded: number[] = [];
  const errors: unknown[] = [];
  const watch = new DiskUseWatch({
    clock,
    onError: (_, error) => errors.push(error),
    async measure(path) {
      walks.push(`${(clock.nowMs() - beganMs) / 1000} ${path}`);
      await clock.sleep(walkMs);
      return usedBytes();
    },
  });
  const directory = (path: string) => ({
    path,
    limitBytes: 100,
    exceeded: (used: number) => exceeded.push(used),
  });
  return { clock, watch, directory, walks, exceeded, errors };
}

test("measures small directories every 10 s, and reports an excess", async () => {
  let used = 100;
  const { clock, watch, directory, walks, exceeded } = aWatch(1, () => used);
  watch.watch(directory("/a"));
  watch.watch(directory("/a"));
  await clock.run(25_000);
  assert.deepEqual(exceeded, []);
  used = 101;
  await clock.run(20_000);
  assert.deepEqual(walks, ["10 /a", "20.001 /a", "30.002 /a", "40.003 /a"]);
  assert.deepEqual(exceeded, [101, 101]);
  watch.unwatch("/a");
  assert.equal(clock.pending, 0);
});

test("measures for at most a hundredth of the time, at least every five minutes, one directory at a time", async () => {
  const slow = aWatch(1_000, () => 0);
  slow.watch.watch(slow.directory("/a"));
  slow.watch.watch(slow.directory("/b"));
  await slow.clock.run(220_000);
  assert.deepEqual(slow.walks, ["10 /a", "11 /b", "111 /a", "112 /b", "212 /a", "213 /b"]);
  const slower = aWatch(60_000, () => 0);
  slower.watch.watch(slower.directory("/a"));
  await slower.clock.run(400_000);
  assert.deepEqual(slower.walks, ["10 /a", "370 /a"]);
});

test("reports and repeats a failed measurement, and close waits for it", async () => {
  const { clock, watch, directory, walks, errors } = aWatch(5, () => assert.fail("du: no size"));
  watch.watch(directory("/a"));
  await clock.run(30_000);
  assert.equal(errors.length, 2);
  const closing = watch.close();
  await clock.run(60_000);
  await closing;
  assert.equal(walks.length, 2);
  assert.equal(clock.pending, 0);
});

test("continues to measure the other paths after one is unwatched", async () => {
  const { clock, watch, directory, walks } = aWatch(1, () => 0);
  for (const path of ["/pods/a", "/pods/a/vol", "/pods/a2"]) watch.watch(directory(path));
  watch.unwatch("/pods/a");
  await clock.run(10_500);
  assert.deepEqual(walks, ["10 /pods/a2"]);
});

test("close stops all measurements, also those that are due", async () => {
  const { clock, watch, directory, walks } = aWatch(1_000, () => 0);
  for (const path of ["/a", "/b"]) watch.watch(directory(path));
  await clock.run(10_500);
  const closing = watch.close();
  await clock.run(60_000);
  await closing;
  assert.deepEqual(walks, ["10 /a"]);
});
