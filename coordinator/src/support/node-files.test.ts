import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode } from "../../test/support/entries.ts";
import { chooseNodes } from "./node-files.ts";

const NODES = [
  aNode({ name: "a" }),
  aNode({ name: "b", ready: false }),
  aNode({ name: "c" }),
  aNode({ name: "d", ready: false }),
];

test("nodes that aren't ready come first, and the rest is named", () => {
  assert.deepEqual(chooseNodes(NODES, [], 3), { chosen: ["b", "d", "a"], rest: ["c"] });
});

test("chooses all nodes that are requested by name, once each", () => {
  assert.deepEqual(chooseNodes(NODES, ["c", "a", "c"], 1), { chosen: ["c", "a"], rest: [] });
});
