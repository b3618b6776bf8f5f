import assert from "node:assert/strict";
import { test } from "node:test";
import { statusText } from "./status-text.ts";

test("names the nodes and pods, and why the coordinator is not ready", () => {
  const figures = { nodes: 3, readyNodes: 2, pods: 40 };
  assert.equal(statusText({ ...figures, reasons: [] }), "2 of 3 nodes are Ready, 40 pods");
  assert.equal(
    statusText({ ...figures, reasons: ["disk full"] }),
    "2 of 3 nodes are Ready, 40 pods; disk full",
  );
});
