import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRule } from "../../../../test/support/rules.ts";
import { choiceProblem, controlProblem, lengthProblem, nulProblem, requiredChoiceProblem } from "./text.ts";

describeRule("nulProblem", nulProblem, { valid: ["", "a\nb"], invalid: ["\0", "a\0b"] });

describeRule("controlProblem", controlProblem, {
  valid: ["", "a b", "ü😀"],
  invalid: ["a\r", "\n", "\t", "\0", "\x7f", "\x1b[31m"],
});

describeRule("lengthProblem counts bytes", (text: string) => lengthProblem(text, 4), {
  valid: ["abcd", "éé"],
  invalid: ["abcde", "ééx"],
});

describeRule("choiceProblem", (text: string) => choiceProblem(text, ["On", "Off"]), {
  valid: ["", "On", "Off"],
  invalid: ["on", "OFF", "x", "On "],
});

describeRule("requiredChoiceProblem", (text: string) => requiredChoiceProblem(text, ["On", "Off"]), {
  valid: ["On"],
  invalid: ["", "x"],
});

test("suggests the correct spelling of a choice", () => {
  assert.equal(choiceProblem("always", ["Always", "Never"]), "must be written Always");
  assert.equal(choiceProblem("x", ["A", "B", "C"]), "must be A, B or C");
  assert.equal(choiceProblem("x", ["A", "B"]), "must be A or B");
  assert.equal(choiceProblem("x", ["A"]), "must be A");
});
