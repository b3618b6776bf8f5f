import assert from "node:assert/strict";
import { test } from "node:test";
import type { WatchedDirectory } from "../volumes/disk-use-watch.ts";
import { type LimitedRoot, type RootDiskExcess, RootDiskWatch } from "./root-disk-watch.ts";

const aRoot = (containerId: string): LimitedRoot => ({
  podUid: "p",
  container: "main",
  containerId,
  limitBytes: 10 * 2 ** 20,
});

function aWatch(layers: Record<string, string | Error>) {
  const watched = new Map<string, WatchedDirectory>();
  const excesses: RootDiskExcess[] = [];
  const failures: string[] = [];
  const asked: string[] = [];
  const watch = new RootDiskWatch({
    runtime: {
      ownLayer: async (id) => {
        asked.push(id);
        const layer = layers[id];
        if (layer instanceof Error) throw layer;
        return layer;
      },
    },
    diskUse: {
      watch: (directory) => watched.set(directory.path, directory),
      unwatch: (path) => watched.delete(path),
    },
    signal: new AbortController().signal,
    exceeded: (excess) => excesses.push(excess),
    failed: (root) => failures.push(root.containerId),
  });
  return {
    watch,
    watched,
    excesses,
    failures,
    asked,
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

test("looks up a container once, watches it while it runs, and describes its excess", async () => {
  const { watch, watched, excesses, asked, settled } = aWatch({ a: "/layers/a", b: "/layers/b" });
  watch.follow([aRoot("a"), aRoot("b")]);
  watch.follow([aRoot("a"), aRoot("b")]);
  await settled();
  watch.follow([aRoot("a")]);
  assert.deepEqual([...watched.keys()], ["/layers/a"]);
  assert.deepEqual(asked, ["a", "b"]);
  assert.equal(watched.get("/layers/a")?.limitBytes, 10 * 2 ** 20);
  watched.get("/layers/a")?.exceeded(12.5 * 2 ** 20);
  assert.deepEqual(excesses, [
    {
      ...aRoot("a"),
      usedBytes: 12.5 * 2 ** 20,
      message: "container main has written 12.5 MiB over its image, its ephemeral-storage limit is 10 MiB",
    },
  ]);
  watch.follow([]);
  assert.equal(watched.size, 0);
});

test("does not watch a container that ends during its look-up", async () => {
  const { watch, watched, settled } = aWatch({ a: "/layers/a" });
  watch.follow([aRoot("a")]);
  watch.follow([]);
  await settled();
  assert.equal(watched.size, 0);
});

test("reports a container that can't be looked up, and retries the look-up", async () => {
  const layers: Record<string, string | Error> = { a: new Error("no") };
  const { watch, watched, failures, settled } = aWatch(layers);
  watch.follow([aRoot("a"), aRoot("unknown")]);
  await settled();
  assert.deepEqual(failures, ["a", "unknown"]);
  layers.a = "/layers/a";
  watch.follow([aRoot("a")]);
  await settled();
  assert.deepEqual([...watched.keys()], ["/layers/a"]);
});
