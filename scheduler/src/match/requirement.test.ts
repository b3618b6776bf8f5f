import assert from "node:assert/strict";
import { test } from "node:test";
import type { SelectorRequirement } from "../types.ts";
import { compileRequirement } from "./requirement.ts";

type Case = [
  SelectorRequirement["operator"],
  readonly string[] | undefined,
  string | undefined,
  boolean | "bad",
];

const CASES: Case[] = [
  ["In", ["a", "b"], "a", true],
  ["In", ["a", "b"], "c", false],
  ["In", ["a"], undefined, false],
  ["In", [""], "", true],
  ["In", [], "a", "bad"],
  ["In", undefined, "a", "bad"],
  ["NotIn", ["a", "b"], "a", false],
  ["NotIn", ["a"], "c", true],
  ["NotIn", ["a"], undefined, true],
  ["NotIn", [], undefined, "bad"],
  ["Exists", undefined, "", true],
  ["Exists", [], undefined, false],
  ["Exists", ["a"], "a", "bad"],
  ["DoesNotExist", undefined, undefined, true],
  ["DoesNotExist", undefined, "a", false],
  ["DoesNotExist", ["a"], undefined, "bad"],
  ["Gt", ["5"], "6", true],
  ["Gt", ["5"], "5", false],
  ["Gt", ["5"], "007", true],
  ["Gt", ["5"], "x", false],
  ["Gt", ["5"], undefined, false],
  ["Gt", ["9223372036854775806"], "9223372036854775807", true],
  ["Gt", ["1"], "9223372036854775808", false],
  ["Gt", ["x"], "6", "bad"],
  ["Gt", ["1", "2"], "6", "bad"],
  ["Gt", ["-5"], "6", "bad"],
  ["Lt", ["5"], "4", true],
  ["Lt", ["5"], "-4", true],
  ["Lt", ["5"], "5", false],
  ["Lt", undefined, "4", "bad"],
  ["In", ["no spaces"], "no spaces", "bad"],
  ["In", ["a".repeat(64)], "a", "bad"],
];

test("evaluates every operator for present, missing and malformed labels", () => {
  for (const [operator, values, actual, expected] of CASES) {
    const compiled = compileRequirement({ key: "k", operator, ...(values === undefined ? {} : { values }) });
    const shown = `${operator} ${JSON.stringify(values)} on ${actual}`;
    if (expected === "bad") assert.equal(compiled, undefined, shown);
    else assert.equal(compiled?.(actual), expected, shown);
  }
});
