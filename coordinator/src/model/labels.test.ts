import assert from "node:assert/strict";
import { test } from "node:test";
import { hasLabels } from "./labels.ts";

test("all labels of a selector have to be there with the same value", () => {
  const labels = { app: "web", tier: "" };
  assert.ok(hasLabels(labels, {}));
  assert.ok(hasLabels(labels, { app: "web" }));
  assert.ok(hasLabels(labels, { app: "web", tier: "" }));
  assert.ok(!hasLabels(labels, { app: "api" }));
  assert.ok(!hasLabels(labels, { app: "web", zone: "a" }));
  assert.ok(!hasLabels(labels, { zone: "" }));
  assert.ok(!hasLabels({}, { app: "web" }));
});

test("metadata that every object has does not become a label", () => {
  assert.ok(!hasLabels({}, { constructor: "x" }));
  assert.ok(!hasLabels({}, { toString: "x" }));
});
