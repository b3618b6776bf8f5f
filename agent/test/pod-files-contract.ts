import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { PodFiles } from "../src/pods/pod-files.ts";

/** Tests the contract of PodFiles. `open` creates separate files for each test. */
export function testPodFiles(name: string, open: (t: TestContext) => PodFiles): void {
  const check = (what: string, run: (files: PodFiles) => Promise<void>) =>
    test(`${name}: ${what}`, (t) => run(open(t)));

  check("each attempt of a container has a log of its own", async (files) => {
    const logs = await Promise.all([
      files.prepare("p1", "main", 1),
      files.prepare("p1", "main", 2),
      files.prepare("p1", "side", 1),
      files.prepare("p2", "main", 1),
    ]);
    assert.equal(new Set(logs.map(({ logFile }) => logFile)).size, logs.length);
    assert.deepEqual([...(await files.podUids())].sort(), ["p1", "p2"]);
  });

  check("has no lines of an attempt that was not prepared", async (files) => {
    assert.equal(await files.lastLines("p1", "main", 1), "");
    await files.prepare("p1", "main", 2);
    assert.equal(await files.lastLines("p1", "main", 1), "");
  });

  check("a removed pod has no files, and removing it again does nothing", async (files) => {
    await files.prepare("p1", "main", 1);
    await files.prepare("p2", "main", 1);
    await files.remove("p1");
    await files.remove("p1");
    await files.remove("unknown");
    assert.deepEqual([...(await files.podUids())], ["p2"]);
    assert.equal(await files.lastLines("p1", "main", 1), "");
  });
}
