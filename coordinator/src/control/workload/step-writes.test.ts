import assert from "node:assert/strict";
import { test } from "node:test";
import { aWorkloadEntry } from "../../../test/support/entries.ts";
import { eachWrite } from "./step-writes.ts";

test("gives new pods different names, even if random names repeat", () => {
  const resource = aWorkloadEntry();
  const { workload: of } = resource;
  assert.ok(of !== undefined);
  const names = ["aaaaa", "aaaaa", "bbbbb", "bbbbb", "aaaaa", "ccccc"];
  const writes = eachWrite(
    [1, 2].map((count) => ({ type: "create-pods", count, why: "", of }) as const),
    {
      resource,
      status: undefined,
      nowMs: 0,
      randomName: (length) => (length === 5 ? (names.shift() ?? "ddddd") : "x".repeat(length)),
      priorityOf: () => undefined,
      hasTemplate: () => true,
      placement: undefined,
    },
  );
  const keys = [...writes].flatMap(({ ops }) => ops.map((op) => ("key" in op ? op.key : "")));
  assert.deepEqual(
    keys.map((key) => key.slice(-5)),
    ["aaaaa", "bbbbb", "ccccc"],
  );
});
