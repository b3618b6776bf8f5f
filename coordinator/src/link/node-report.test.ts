import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../errors.ts";
import { checkNodeReport } from "./node-report.ts";

const AMOUNTS = {
  cpu: "3800m",
  memory: "15Gi",
  "ephemeral-storage": "100Gi",
  pods: "110",
  "vendor.example/gpu": "2",
};

test("accepts a report with valid amounts", () => {
  checkNodeReport(NodeReport.fromPartial({ capacity: AMOUNTS, allocatable: AMOUNTS, labels: { zone: "a" } }));
  checkNodeReport(NodeReport.fromPartial({}));
});

for (const [what, report, fields] of [
  ["no report", undefined, ["node"]],
  ["an amount that is none", { allocatable: { cpu: "lots", memory: "1Gi" } }, ["node.allocatable[cpu]"]],
  ["a negative one", { capacity: { memory: "-1" } }, ["node.capacity[memory]"]],
  ["one beyond counting", { capacity: { memory: "10E" } }, ["node.capacity[memory]"]],
  ["a label of 2,000 characters", { labels: { a: "x".repeat(2_000) } }, ["node.labels"]],
  ["an address of 2,000 characters", { address: "x".repeat(2_000) }, ["node.address"]],
  ["10,001 images", { images: Array.from({ length: 10_001 }, () => "a") }, ["node.images"]],
] as const) {
  test(`rejects a report with ${what}`, () => {
    assert.throws(
      () => checkNodeReport(report && NodeReport.fromPartial(report)),
      (error: unknown) => {
        assert.ok(error instanceof CoordinatorError);
        assert.deepEqual(
          error.violations.map(({ field }) => field),
          fields,
        );
        return error.code === "INVALID";
      },
    );
  });
}
