import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedLabelsMessage } from "./node-labels.ts";

test("names five of the rejected labels, shortened, and counts further ones", () => {
  const message = refusedLabelsMessage("n1", ["a=1", "b=2"]);
  assert.match(message, /^the agent's configuration sets a=1, b=2, which only operators can set/);
  assert.match(message, /`forage node label n1 KEY=VALUE`/);
  const many = ["a=1", "b=2", "c=3", "d=4", "e=5", "f=6", "g=7"];
  assert.match(refusedLabelsMessage("n1", many), / sets a=1, b=2, c=3, d=4, e=5 and 2 more, which/);
  assert.match(refusedLabelsMessage("n1", ["x".repeat(300)]), / sets x{200}, which/);
});
