import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { messageOf } from "@forage/common/message-of";
import { FakeRuntime } from "../runtime/fake.ts";
import { type ContainerSpec, RuntimeError } from "../runtime/runtime.ts";
import { ImageCollector } from "./image-collector.ts";
import { ImageRecords } from "./image-records.ts";

const DAY_MS = 86_400_000;
const LIMITS = { unusedMs: 7 * DAY_MS, highPercent: 85, lowPercent: 80 };
const { signal } = new AbortController();

test("removes images that are unused for a week, except those of pods and containers", async (t) => {
  const { runtime, clock, desired, collector, removed } = await aHost(t, ["pod", "container", "unused"]);
  desired.push("pod");
  const { id } = await runtime.run(aSpec("container"), signal);
  runtime.exit(id, 0);
  await collector.collect(signal);
  assert.deepEqual(removed, []);
  clock.ms += 7 * DAY_MS;
  await collector.collect(signal);
  assert.deepEqual(removed, [`${full("unused")} age`]);
  desired.length = 0;
  await runtime.remove([id], signal);
  clock.ms += 7 * DAY_MS - 1;
  await collector.collect(signal);
  assert.equal(removed.length, 1);
  clock.ms += 1;
  await collector.collect(signal);
  assert.deepEqual([...runtime.images], []);
});

test("on a full disk, removes the images unused longest until there is room", async (t) => {
  const { runtime, clock, desired, collector, disk, removed } = await aHost(t, ["a", "b", "c", "used"]);
  for (const name of ["used", "a", "b"]) {
    desired.push(name);
    await collector.collect(signal);
    desired.length = 0;
    desired.push("used");
    clock.ms += 3_600_000;
  }
  // Each image takes 4 % of the disk.
  disk.used = () => 72 + 4 * runtime.images.size;
  await collector.collect(signal);
  assert.deepEqual(removed, [`${full("c")} disk-pressure`, `${full("a")} disk-pressure`]);
});

test("removes nothing below the upper threshold, and reports when it can't free enough", async (t) => {
  const { clock, desired, collector, disk, removed, reports } = await aHost(t, ["a", "used"]);
  desired.push("used");
  await collector.collect(signal);
  clock.ms += DAY_MS;
  disk.used = () => 84;
  await collector.collect(signal);
  assert.deepEqual(removed, []);
  disk.used = () => 99;
  await collector.collect(signal);
  assert.deepEqual([removed.length, reports], [1, ["still 99"]]);
  disk.used = () => LIMITS.highPercent;
  await collector.collect(signal);
  assert.deepEqual(reports.slice(1), ["still 85"]);
});

test("an image that can't be removed does not prevent the removal of others", async (t) => {
  const { runtime, clock, collector, removed, reports } = await aHost(t, ["a", "b"]);
  await collector.collect(signal);
  clock.ms += 8 * DAY_MS;
  runtime.faults.fail("removeImage", new RuntimeError("UNKNOWN", "no", { retryable: true }));
  await collector.collect(signal);
  assert.deepEqual([removed.length, reports], [1, ["no"]]);
});

test("a pod that arrives while other images are removed keeps its image", async (t) => {
  const { runtime, clock, desired, collector, removed } = await aHost(t, ["a", "b"]);
  await collector.collect(signal);
  clock.ms += 8 * DAY_MS;
  const removing = collector.collect(signal);
  while (!runtime.faults.calls.some((it) => it.method === "removeImage")) await Promise.resolve();
  desired.push("a", "b");
  await removing;
  assert.equal(removed.length, 1);
});

test("keeps the images' last uses over a restart, and starts over if the records are unreadable", async (t) => {
  const { runtime, clock, dir, desired, collector, collectorOf } = await aHost(t, ["a"]);
  await collector.collect(signal);
  assert.equal(statSync(join(dir, "images.json")).mode & 0o777, 0o600);
  clock.ms += 8 * DAY_MS;
  await (await collectorOf()).collect(signal);
  assert.equal(runtime.images.size, 0);
  runtime.images.add(full("b"));
  writeFileSync(join(dir, "images.json"), '{"images": {"tor');
  await (await collectorOf()).collect(signal);
  assert.equal(runtime.images.size, 1);
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(join(dir, "images.json"), "utf8")).images), [
    full("b"),
  ]);
  assert.deepEqual(desired, []);
});

test("keeps the namespaces that may use an image until the image is removed", async (t) => {
  const { records, dir, clock } = await aHost(t, []);
  records.pulled("private:1", "a", true);
  records.pulled("public:1", "a", false);
  records.pulled("public:1", "b", true);
  await records.save();
  const again = await ImageRecords.open({ dir, nowMs: () => clock.ms, onError: assert.ifError });
  const may = (reference: string, namespace: string) => again.isOpenTo(reference, namespace);
  assert.deepEqual(
    [may("private:1", "a"), may(full("private:1"), "b"), may("public:1", "c")],
    [true, false, true],
  );
  again.used([full("private:1")]);
  assert.equal(may("private:1", "b"), false);
  again.pulled("private:1", "b", true);
  assert.deepEqual(
    [may("private:1", "a"), may("private:1", "b"), may("private:1", "c")],
    [true, true, false],
  );
  again.keep([]);
  assert.equal(may("private:1", "c"), true);
  await again.save();
});

test("keeps a pushed image whatever its age, and removes it last when the disk is full", async (t) => {
  const { runtime, clock, collector, records, disk, removed } = await aHost(t, ["a", "b", "c"]);
  await records.pushed("a", undefined, []);
  await collector.collect(signal);
  clock.ms += 8 * DAY_MS;
  runtime.images.add(full("d"));
  await collector.collect(signal);
  assert.deepEqual(removed, [`${full("b")} age`, `${full("c")} age`]);
  clock.ms += DAY_MS;
  disk.used = () => (runtime.images.size === 0 ? 10 : 90);
  await collector.collect(signal);
  assert.deepEqual(removed.slice(2), [`${full("d")} disk-pressure`, `${full("a")} disk-pressure`]);
});

test("keeps the record of an image that was added while images were listed", async (t) => {
  const { records, clock } = await aHost(t, []);
  await records.pushed("a", "shop", ["sha256:1"]);
  records.keep([], clock.ms);
  assert.equal(records.isOpenTo("a", "other"), false);
  records.keep([], clock.ms + 1);
  assert.equal(records.isOpenTo("a", "other"), true);
});

const full = (name: string) => `docker.io/library/${name}${name.includes(":") ? "" : ":latest"}`;

const aSpec = (image: string): ContainerSpec => ({
  name: `of-${image}`,
  image,
  command: [],
  args: [],
  env: [],
  labels: {},
  binds: [],
  networkNamespace: "/run/netns/x",
  hostname: "h",
  logFile: "/dev/null",
});

async function aHost(t: TestContext, images: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), "forage-images-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const clock = {
    ms: 1_000 * DAY_MS,
    nowMs: () => clock.ms,
    monotonicMs: () => clock.ms,
    schedule: () => () => {},
  };
  const runtime = new FakeRuntime({ clock, images });
  const desired: string[] = [];
  const removed: string[] = [];
  const reports: string[] = [];
  const disk = { used: () => 50 };
  const openRecords = () => ImageRecords.open({ dir, nowMs: () => clock.ms, onError: () => undefined });
  const collectorWith = (records: ImageRecords) =>
    new ImageCollector({
      runtime,
      clock,
      records,
      limits: LIMITS,
      desired: () => desired,
      usedPercent: async () => disk.used(),
      events: {
        removed: (reference, why) => removed.push(`${reference} ${why}`),
        failed: (error) => reports.push(messageOf(error)),
        stillFull: (percent) => reports.push(`still ${percent}`),
      },
    });
  const records = await openRecords();
  const collectorOf = async () => collectorWith(await openRecords());
  return {
    dir,
    clock,
    runtime,
    desired,
    removed,
    reports,
    disk,
    records,
    collector: collectorWith(records),
    collectorOf,
  };
}
