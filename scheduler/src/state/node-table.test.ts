import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeTable } from "./node-table.ts";

test("counts 64 extended resources of a node, and names the omitted ones", () => {
  const table = new NodeTable();
  assert.deepEqual(table.set(aNode("full", devices(64, "a"))).left, []);
  assert.deepEqual(table.set(aNode("over", devices(65, "a"))).left, ["a.example/064"]);
  assert.equal(table.columns.length, table.firstExtended + 64);
});

test("counts 253 extended resources of all nodes, and reuses a slot that is free again", () => {
  const table = new NodeTable();
  for (const name of ["a", "b", "c"]) assert.deepEqual(table.set(aNode(name, devices(64, name))).left, []);
  assert.deepEqual(table.set(aNode("d", devices(61, "d"))).left, []);
  assert.deepEqual(table.set(aNode("late", devices(1, "late"))).left, ["late.example/000"]);
  assert.equal(table.columns.length, table.firstExtended + 253);
  assert.deepEqual(
    table.set(aNode("known", devices(64, "a"))).left,
    [],
    "resources that have a place take no other",
  );
  assert.deepEqual(table.set(aNode("d", devices(60, "d"))).left, []);
  assert.deepEqual(table.set(aNode("late", devices(1, "late"))).left, []);
});

function devices(count: number, prefix: string): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${prefix}.example/${String(index).padStart(3, "0")}`, "1"]),
  );
}

function aNode(name: string, extended: Readonly<Record<string, string>>) {
  return { name, labels: {}, taints: [], allocatable: { cpu: "1", memory: "1Gi", pods: "10", ...extended } };
}
