import assert from "node:assert/strict";
import { test } from "node:test";
import { LEFT_OUT } from "@forage/common/scrub-text";
import { leaveOut } from "./leave-out.ts";

const TIME = "2026-01-02T03:04:05.678Z";

for (const [what, value, expected] of [
  [
    "fields that are not named",
    { token: "t", args: ["a", "b"] },
    { token: LEFT_OUT, args: [LEFT_OUT, LEFT_OUT] },
  ],
  ["numbers, switches, times and empty texts", [1, true, null, TIME, ""], [1, true, null, TIME, ""]],
  ["names, and labels under any key", { name: "n", labels: { x: "y" } }, { name: "n", labels: { x: "y" } }],
  ["wide numbers", { generation: "12", token: "12" }, { generation: "12", token: LEFT_OUT }],
  ["messages of Forage", { conditions: [{ message: "m" }] }, { conditions: [{ message: "m" }] }],
  [
    "messages of containers",
    { terminated: { at: { message: "m" } } },
    { terminated: { at: { message: LEFT_OUT } } },
  ],
  [
    "headers, and not capabilities, below add",
    { filters: { add: { "x-key": "v" } }, capabilities: { add: ["NET_ADMIN"] } },
    { filters: { add: { "x-key": LEFT_OUT } }, capabilities: { add: ["NET_ADMIN"] } },
  ],
] as const)
  test(`leaves out texts that may be secret: ${what}`, () => {
    assert.deepEqual(leaveOut(value), expected);
  });
