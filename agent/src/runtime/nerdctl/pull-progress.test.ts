import assert from "node:assert/strict";
import { test } from "node:test";
import { PullProgress } from "./pull-progress.ts";

const frame = (seconds: string, layer: string, total: string) =>
  `127.0.0.1:5000/a/b:1: resolved       |\u001b[32m++++++\u001b[0m| \n${layer}\nelapsed: ${seconds} s         total:   ${total} (0.0 B/s)    \n`;
const LAYER = "layer-sha256:ab: downloading    |\u001b[32m++\u001b[0m------|  1.0 MiB/3.0 MiB";

test("the elapsed time and the mean rate do not count as progress", () => {
  const progress = new PullProgress();
  assert.equal(progress.push(frame("0.1", LAYER, "1.0 M")), true);
  assert.equal(progress.push(frame("0.2", LAYER, "1.0 M")), false);
  assert.equal(progress.push(frame("10.3", LAYER, "1.0 M").replace("(0.0 B/s)", "(93.0 KiB/s)")), false);
});

test("bytes, bars and steps count as progress", () => {
  const progress = new PullProgress();
  progress.push(frame("0.1", LAYER, "1.0 M"));
  assert.equal(progress.push(frame("0.2", LAYER.replace("1.0 MiB", "1.1 MiB"), "1.0 M")), true);
  assert.equal(progress.push(frame("0.3", LAYER, "1.1 M")), true);
  assert.equal(progress.downloading, true);
  assert.equal(progress.push(frame("0.4", "layer-sha256:ab: done |++++|", "3.0 M")), true);
  assert.equal(progress.downloading, false);
});

test("accepts lines in pieces, and counts empty input as no progress", () => {
  const progress = new PullProgress();
  assert.equal(progress.push(""), false);
  assert.equal(progress.push("a: resol"), false);
  assert.equal(progress.push("ving\n"), true);
  assert.equal(progress.push("a: resolving\n"), false);
});

test("counts present layers as done, and includes sizes as soon as they are known", () => {
  const progress = new PullProgress();
  const layer = (name: string, rest: string) => `layer-sha256:${name}: ${rest}\n`;
  progress.push(
    `r/a:1: resolved |++|\nmanifest-sha256:a: done |++|\n${layer("aa", "waiting |--|")}${layer("bb", "exists |++|")}`,
  );
  assert.deepEqual(progress.state, { layersDone: 1, layers: 2, bytesDone: 0, bytesTotal: 0 });
  progress.push(layer("aa", "downloading |+--| 1.5 MiB/3.0 MiB"));
  assert.deepEqual(progress.state, {
    layersDone: 1,
    layers: 2,
    bytesDone: 1.5 * 2 ** 20,
    bytesTotal: 3 * 2 ** 20,
  });
  progress.push(layer("aa", "downloading |++-| 1023.9 K/2.0 GiB"));
  assert.deepEqual(progress.state.bytesDone, Math.round(1023.9 * 1024));
  progress.push(layer("aa", "done |++|"));
  assert.deepEqual(progress.state, { layersDone: 2, layers: 2, bytesDone: 2 ** 31, bytesTotal: 2 ** 31 });
});
