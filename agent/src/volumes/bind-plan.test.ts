import assert from "node:assert/strict";
import { test } from "node:test";
import { planBinds } from "./bind-plan.ts";

const VOLUMES = new Map([
  ["data", { path: "/v/data", readOnly: false }],
  ["config", { path: "/v/config", readOnly: true }],
  ["odd", { path: "/srv/a,b", readOnly: false }],
]);

test("parents precede what is mounted in them, and the order is otherwise kept", () => {
  const mount = (mountPath: string) => ({ volume: "data", mountPath, subPath: "", readOnly: false });
  const planned = planBinds(["/a/b/c", "/z", "/a", "/a/b/", "//m"].map(mount), VOLUMES);
  assert.deepEqual(
    planned.map(({ target }) => target),
    ["/z", "/a", "/m", "/a/b", "/a/b/c"],
  );
});

test("a mount is read-only if either the mount or its volume is", () => {
  for (const [volume, readOnly, expected] of [
    ["data", false, false],
    ["data", true, true],
    ["config", false, true],
  ] as const) {
    assert.deepEqual(planBinds([{ volume, mountPath: "/x", subPath: "", readOnly }], VOLUMES), [
      { source: `/v/${volume}`, target: "/x", readOnly: expected },
    ]);
  }
});

test("pins sub-paths, and creates them if the volume is writable", () => {
  const planned = planBinds(
    [
      { volume: "data", mountPath: "/x", subPath: "a//b/./c", readOnly: true },
      { volume: "config", mountPath: "/y", subPath: "app.yaml", readOnly: false },
      { volume: "data", mountPath: "/z", subPath: ".", readOnly: false },
      { volume: "odd", mountPath: "/o", subPath: "", readOnly: false },
    ],
    VOLUMES,
  );
  assert.deepEqual(planned, [
    { source: "/v/data", target: "/x", readOnly: true, pin: { subPath: "a/b/c", create: true, index: 0 } },
    {
      source: "/v/config",
      target: "/y",
      readOnly: true,
      pin: { subPath: "app.yaml", create: false, index: 1 },
    },
    { source: "/v/data", target: "/z", readOnly: false },
    { source: "/srv/a,b", target: "/o", readOnly: false, pin: { subPath: "", create: true, index: 3 } },
  ]);
});
