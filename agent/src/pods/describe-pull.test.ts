import assert from "node:assert/strict";
import { test } from "node:test";
import { describePull, pullPercent } from "./describe-pull.ts";

const MIB = 2 ** 20;

for (const [layersDone, layers, bytesDone, bytesTotal, expected] of [
  [0, 0, 0, 0, "querying the registry"],
  [0, 2, 0, 0, "0 of 2 layers"],
  [1, 3, 1.25 * MIB, 80 * MIB, "1 of 3 layers, 1.3 of 80 MiB"],
  [1, 1, MIB, MIB, "unpacking 1 layer"],
  [4, 4, MIB, MIB, "unpacking 4 layers"],
] as const) {
  test(expected, () => assert.equal(describePull({ layersDone, layers, bytesDone, bytesTotal }), expected));
}

for (const [layersDone, layers, bytesDone, bytesTotal, expected] of [
  [0, 0, 0, 0, undefined],
  [1, 4, 0, 0, 25],
  [1, 5, 12 * MIB, 80 * MIB, 15],
  [2, 3, MIB, MIB, 99],
  [3, 3, MIB, MIB, 100],
] as const) {
  test(`${layersDone} of ${layers} layers and ${bytesDone} of ${bytesTotal} bytes are ${expected} %`, () =>
    assert.equal(pullPercent({ layersDone, layers, bytesDone, bytesTotal }), expected));
}
