import assert from "node:assert/strict";
import { test } from "node:test";
import { isPartOf, mountAt, mountsBelow, parseMountTable, visibleFrom } from "./mount-table.ts";

const TABLE = parseMountTable(`27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 27 0:25 / /var/lib/forage/memory rw,nosuid - tmpfs forage-secrets rw,size=10240k
31 27 7:0 / /var/lib/forage/mounts/a/volume/scratch rw - ext4 /dev/loop0 rw
32 27 254:0 /srv/with\\040space\\134 /var/lib/forage/mounts/a/pin/web.0 rw master:1 - ext4 /dev/vda rw
33 31 254:0 /gone//deleted /var/lib/forage/mounts/a/volume/scratch/below rw - ext4 /dev/vda rw
34 27 7:1 / /var/lib/forage/mounts/a/volume/scratch rw - ext4 /dev/loop1 rw

short line
`);
const A = "/var/lib/forage/mounts/a";

test("parses fields after the optional ones, with their escapes", () => {
  assert.equal(TABLE.length, 6);
  assert.deepEqual(TABLE[3], {
    device: "254:0",
    root: "/srv/with space\\",
    mountPoint: `${A}/pin/web.0`,
    type: "ext4",
    source: "/dev/vda",
  });
});

test("the newest mount at a path takes precedence", () => {
  assert.equal(mountAt(TABLE, `${A}/volume/scratch`)?.source, "/dev/loop1");
  assert.equal(mountAt(TABLE, A), undefined);
});

test("lists mounts below a path newest first, and ignores names with the same beginning", () => {
  assert.deepEqual(
    mountsBelow(TABLE, `${A}/volume`).map(({ device }) => device),
    ["7:1", "254:0", "7:0"],
  );
  assert.deepEqual(mountsBelow(TABLE, `${A}/volume/scr`), []);
  assert.deepEqual(mountsBelow(TABLE, "/var/lib/forage/memory").length, 1);
  assert.equal(mountsBelow(TABLE, "/").length, 6);
});

test("a path shows its place in the file system and the mounts below it", () => {
  for (const [path, visible] of [
    ["/srv/data", [["254:0", "/srv/data"]]],
    ["/var/lib/forage/memory", [["0:25", "/"]]],
    ["/var/lib/forage/memory/x/y", [["0:25", "/x/y"]]],
    [`${A}/pin/web.0/deep`, [["254:0", "/srv/with space\\/deep"]]],
    [
      `${A}/volume/scratch`,
      [
        ["7:1", "/"],
        ["254:0", "/gone//deleted"],
      ],
    ],
  ] as const) {
    assert.deepEqual(
      visibleFrom(TABLE, path).map(({ device, root }) => [device, root]),
      visible,
    );
  }
  assert.deepEqual(visibleFrom(TABLE, "/")[0], { device: "254:0", root: "/" });
});

test("accepts a path only if it is in the volume, on the same file system, and not deleted", () => {
  const outer = { device: "254:0", root: "/srv/data" };
  for (const [device, root, holds] of [
    ["254:0", "/srv/data", true],
    ["254:0", "/srv/data/a/b", true],
    ["254:0", "/srv/database", false],
    ["254:0", "/srv", false],
    ["254:0", "/", false],
    ["7:0", "/srv/data/a", false],
    ["254:0", "/srv/data/a//deleted", false],
  ] as const) {
    assert.equal(isPartOf({ device, root }, outer), holds, `${device} ${root}`);
  }
  assert.ok(isPartOf({ device: "7:0", root: "/x" }, { device: "7:0", root: "/" }));
});
