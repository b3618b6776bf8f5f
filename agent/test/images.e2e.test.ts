import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { systemClock } from "../src/clock.ts";
import { ImageCollector } from "../src/images/image-collector.ts";
import { ImageRecords } from "../src/images/image-records.ts";
import { usedPercent } from "../src/images/used-percent.ts";
import { findOwnLayer } from "../src/runtime/nerdctl/own-layer.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";

const DAY_MS = 86_400_000;

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
});
after(() => it?.close());

test("removes unused images with their layers, except those of pods and containers", async ({ signal }) => {
  const [unused, ofPod, ofContainer] = ["unused:1", "of-pod:1", "of-container:1"].map(
    (name) => `localhost/forage/${name}`,
  ) as [string, string, string];
  const place = await it.runtime.imageStorage(signal);
  assert.equal(place, join(it.host.dir, "c/root/io.containerd.snapshotter.v1.overlayfs"));
  const contents = join(it.host.dir, "c/root/io.containerd.content.v1.content/blobs/sha256");
  const stored = () => [...readdirSync(join(place, "snapshots")), ...readdirSync(contents)];
  for (const name of [ofPod, ofContainer]) await it.host.loadImage({ name, files: { "/what": name } });
  const before = new Set(stored());
  await it.host.loadImage({ name: unused, files: { "/what": unused } });
  const added = stored().filter((name) => !before.has(name));
  assert.ok(added.length > 0);
  const { id } = await it.runtime.run(it.spec(["sleep", "1000"], { image: ofContainer }), signal);
  await it.runtime.stop(id, 0, signal);

  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
  const removed: string[] = [];
  const failures: unknown[] = [];
  const records = await ImageRecords.open({
    dir: join(it.host.dir, "images"),
    nowMs: clock.nowMs,
    onError: (error) => failures.push(error),
  });
  const collector = new ImageCollector({
    runtime: it.runtime,
    clock,
    records,
    limits: { unusedMs: 7 * DAY_MS, highPercent: 85, lowPercent: 80 },
    desired: () => [ofPod, it.host.image],
    // Independent of this machine's disk.
    usedPercent: async (directory) => Math.min(84, await usedPercent(directory)),
    events: {
      removed: (reference) => removed.push(reference),
      failed: (error) => failures.push(error),
      stillFull: () => failures.push("full"),
    },
  });
  await collector.collect(signal);
  assert.deepEqual(removed, []);
  aheadMs = 7 * DAY_MS + 1;
  await collector.collect(signal);
  assert.deepEqual([removed, failures], [[unused], []]);
  const left = () => stored().filter((name) => added.includes(name));
  await waitFor(() => left().length === 0, {
    what: "its layers and blobs are gone",
    limitMs: 60_000,
    explain: () => left().join(" "),
  });
  assert.equal(await it.runtime.hasImage(ofContainer, signal), true);
  await it.runtime.remove([id], signal);
});

test("finds the files that a container writes over its image until it ends", async ({ signal }) => {
  const { id } = await it.runtime.run(it.spec(["sh", "-c", "echo x >/written; sleep 1000"]), signal);
  const layer = await it.runtime.ownLayer(id, signal);
  assert.ok(layer);
  await waitFor(() => readdirSync(layer).includes("written"), { what: "the file is there", limitMs: 60_000 });
  await it.runtime.stop(id, 0, signal);
  assert.equal(await it.runtime.ownLayer(id, signal), undefined);
  await it.runtime.remove([id], signal);
  assert.equal(await findOwnLayer(0), undefined);
});
