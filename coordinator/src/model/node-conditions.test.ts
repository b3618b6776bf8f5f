import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import { nodeProblems } from "./node-conditions.ts";

const NOT_READY = "node.kubernetes.io/not-ready";

for (const [type, status, taint] of [
  ["RuntimeReady", true, undefined],
  ["RuntimeReady", false, NOT_READY],
  ["NetworkReady", false, NOT_READY],
  ["DiskPressure", false, undefined],
  ["DiskPressure", true, "node.kubernetes.io/disk-pressure"],
  ["SomethingNew", false, undefined],
  ["SomethingNew", true, undefined],
] as const) {
  test(`${type} ${status} is ${taint ?? "no problem"}`, () => {
    const report = NodeReport.fromPartial({
      conditions: [{ type, status, reason: "Why", message: "because" }],
    });
    const expected = taint === undefined ? [] : [{ taint, message: `${type}: because` }];
    assert.deepEqual(nodeProblems(report), expected);
  });
}

test("a node without a report has no problems", () => {
  assert.deepEqual(nodeProblems(undefined), []);
});
