import assert from "node:assert/strict";
import { test } from "node:test";
import { hasLabels, sameLabels } from "./labels.ts";

test("a selector matches if all its labels are present with the same values", () => {
  const labels = { app: "web", tier: "" };
  assert.ok(hasLabels(labels, {}));
  assert.ok(hasLabels(labels, { app: "web" }));
  assert.ok(hasLabels(labels, { app: "web", tier: "" }));
  assert.ok(!hasLabels(labels, { app: "api" }));
  assert.ok(!hasLabels(labels, { app: "web", zone: "a" }));
  assert.ok(!hasLabels(labels, { zone: "" }));
  assert.ok(!hasLabels({}, { app: "web" }));
});

test("properties of every JavaScript object don't count as labels", () => {
  assert.ok(!hasLabels({}, { constructor: "x" }));
  assert.ok(!hasLabels({}, { toString: "x" }));
});

test("labels are the same with the same keys and values in any order", () => {
  assert.ok(sameLabels({}, {}));
  assert.ok(sameLabels({ a: "1", b: "" }, { b: "", a: "1" }));
  assert.ok(!sameLabels({ a: "1" }, { a: "2" }));
  assert.ok(!sameLabels({ a: "1" }, { b: "1" }));
  assert.ok(!sameLabels({ a: "1" }, { a: "1", b: "" }));
  assert.ok(!sameLabels({ a: "1", b: "" }, { a: "1" }));
});
