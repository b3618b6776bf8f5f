import assert from "node:assert/strict";
import { test } from "node:test";
import { drawUnused } from "./unused-name.ts";

test("draws again while the name is used", () => {
  const draws = ["a", "a", "b", "a", "b", "c"];
  const used = new Set<string>();
  const draw = () => drawUnused(used, () => draws.shift() ?? "");
  assert.deepEqual([draw(), draw(), draw()], ["a", "b", "c"]);
  assert.deepEqual([...used], ["a", "b", "c"]);
});

test("fails if no name is unused", () => {
  assert.throws(() => drawUnused(new Set(["a"]), () => "a"), /none of 1000 random names is unused/);
});
