import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOwnLayer } from "./own-layer.ts";

const PROC = "40 36 0:60 / /proc rw - proc proc rw";

for (const [what, line, expected] of [
  [
    "the root's upper directory",
    "36 35 0:59 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/a/1/fs:/a/2/fs,upperdir=/a/3/fs,workdir=/a/3/work",
    "/a/3/fs",
  ],
  ["with a blank in it", "36 35 0:59 / / rw - overlay overlay rw,upperdir=/a\\040b/3/fs", "/a b/3/fs"],
  ["no overlay", "36 35 0:59 / / rw - ext4 /dev/vda1 rw,upperdir=/x", undefined],
  ["an overlay, but not the root's", "36 35 0:59 / /mnt rw - overlay overlay rw,upperdir=/x", undefined],
  ["nothing", "", undefined],
] as const) {
  test(what, () => assert.equal(parseOwnLayer(`${PROC}\n${line}\n`), expected));
}
