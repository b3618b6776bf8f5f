import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pruneImages } from "./prune-images.ts";

const NOW_MS = 100 * 60 * 60_000;
const HOUR_SECONDS = 60 * 60;

test("recently used images are kept, and older ones are removed with their files", async (t) => {
  const images = mkdtempSync(join(tmpdir(), "forage-images-"));
  t.after(() => rmSync(images, { recursive: true }));
  const hours = { lately: 99.9, yesterday: 76, "two-days-ago": 52, "partial-x": 50 };
  for (const [name, usedHours] of Object.entries(hours)) {
    const dir = join(images, name);
    mkdirSync(join(dir, "root/etc"), { recursive: true });
    utimesSync(dir, 0, usedHours * HOUR_SECONDS);
  }
  await pruneImages(images, 2, NOW_MS);
  assert.deepEqual(readdirSync(images).sort(), ["lately", "yesterday"]);
  await pruneImages(images, 0, NOW_MS);
  assert.deepEqual(readdirSync(images), ["lately"]);
});
