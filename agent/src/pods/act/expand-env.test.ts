import assert from "node:assert/strict";
import { test } from "node:test";
import { expand, expandEnv } from "./expand-env.ts";

const VALUES = new Map([
  ["NAME", "anna"],
  ["EMPTY", ""],
  ["DOLLAR", "$(NAME)"],
]);

for (const [given, then] of [
  ["$(NAME)", "anna"],
  ["<$(NAME)-$(NAME)>", "<anna-anna>"],
  ["$$(NAME)", "$(NAME)"],
  ["$$$(NAME)", "$anna"],
  ["$$$$(NAME)", "$$(NAME)"],
  ["$(EMPTY)", ""],
  ["$(MISSING)", "$(MISSING)"],
  ["$(DOLLAR)", "$(NAME)"],
  ["$NAME {NAME} $", "$NAME {NAME} $"],
  ["$(NAME", "$(NAME"],
  ["$()", "$()"],
  ["cost: 5$$", "cost: 5$"],
] as const) {
  test(`${given} expands to ${then}`, () => assert.equal(expand(given, VALUES), then));
}

test("a value expands only variables defined before it, and the last definition of a name wins", () => {
  const env = expandEnv([
    { name: "A", value: "$(B)" },
    { name: "B", value: "1" },
    { name: "C", value: "$(B)2" },
    { name: "B", value: "$(B)3" },
  ]);
  assert.deepEqual(env, [
    { name: "A", value: "$(B)" },
    { name: "C", value: "12" },
    { name: "B", value: "13" },
  ]);
});
