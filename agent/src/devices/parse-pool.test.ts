import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePool } from "./parse-pool.ts";

const NAME = "example.com/gpu";

test("a unit is one or more devices, and equal units get different ids", () => {
  const shared = { path: "/dev/fuse", containerPath: "/dev/f", permissions: "rwm" };
  const pool = parsePool({ [NAME]: ["/dev/a", ["/dev/b", shared], "/dev/a"] });
  assert.deepEqual(pool[NAME], [
    { id: "/dev/a", devices: [{ hostPath: "/dev/a", containerPath: "/dev/a", permissions: "rw" }] },
    {
      id: "/dev/b+/dev/fuse",
      devices: [
        { hostPath: "/dev/b", containerPath: "/dev/b", permissions: "rw" },
        { hostPath: "/dev/fuse", containerPath: "/dev/f", permissions: "rwm" },
      ],
    },
    { id: "/dev/a#2", devices: [{ hostPath: "/dev/a", containerPath: "/dev/a", permissions: "rw" }] },
  ]);
  assert.deepEqual(parsePool(JSON.stringify({ [NAME]: ["/dev/a"] })), parsePool({ [NAME]: ["/dev/a"] }));
  assert.deepEqual(parsePool({}), {});
});

for (const [what, value, problem] of [
  ["text that is no JSON", "gpu=/dev/a", /JSON/],
  ["a list", [], /resource names/],
  ["a name of Kubernetes' own", { "kubernetes.io/gpu": ["/dev/a"] }, /named like/],
  ["a name without a domain", { cpu: ["/dev/a"] }, /named like/],
  ["no list of units", { [NAME]: "/dev/a" }, /a list of/],
  ["a unit of nothing", { [NAME]: [[]] }, /1 to 64 devices/],
  ["a relative path", { [NAME]: ["dev/a"] }, /absolute paths/],
  ["a path that leads elsewhere", { [NAME]: ["/dev/../etc/shadow"] }, /absolute paths/],
  ["a path with an option", { [NAME]: ["/dev/a:/dev/b:rwm"] }, /absolute paths/],
  ["permissions of its own", { [NAME]: [{ path: "/dev/a", permissions: "x" }] }, /r, w and m/],
  ["no permissions", { [NAME]: [{ path: "/dev/a", permissions: "" }] }, /r, w and m/],
  ["a word that means nothing", { [NAME]: [{ path: "/dev/a", mode: "rw" }] }, /"mode"/],
  ["a number", { [NAME]: [7] }, /each a path/],
] as const) {
  test(`devices: rejects ${what}`, () => assert.throws(() => parsePool(value), problem));
}
