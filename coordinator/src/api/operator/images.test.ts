import assert from "node:assert/strict";
import { test } from "node:test";
import { pushShares } from "./images.ts";

test("limits the pushes of one caller, and leaves room for others", () => {
  const slots = pushShares();
  const ends = Array.from({ length: 8 }, () => slots.take("a"));
  assert.throws(() => slots.take("a"), { code: "RESOURCE_EXHAUSTED", message: /8 of this token/ });
  slots.take("b")();
  ends[0]?.();
  ends[0]?.();
  slots.take("a");
  assert.throws(() => slots.take("a"), { code: "RESOURCE_EXHAUSTED" });
});

test("limits the pushes of all callers together", () => {
  const slots = pushShares();
  const ends = Array.from({ length: 32 }, (_, index) => slots.take(`caller ${index}`));
  assert.throws(() => slots.take("another"), {
    code: "RESOURCE_EXHAUSTED",
    message: /32, which is the limit/,
  });
  for (const end of ends) end();
  slots.take("another");
});
