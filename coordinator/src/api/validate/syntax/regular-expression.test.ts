import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { describeRule } from "../../../../test/support/rules.ts";
import { regularExpressionProblem } from "./regular-expression.ts";

describeRule("regularExpressionProblem", regularExpressionProblem, {
  valid: [
    "/v[0-9]+/.*",
    "^a|b$",
    "(a|b)?c+d*?e{2,5}?f{3}g{2,}",
    "(?:a)(?P<name>b)(?<other>c)(?i)d(?i:e)(?-s:f)(?ims-U:g)",
    "[]a-z]",
    "[^]^-]",
    "[a-]",
    "[[:alpha:][:^digit:]_]",
    "[\\d\\-\\]]",
    "\\d\\D\\w\\W\\s\\S\\b\\B\\A\\z",
    "\\.\\/\\_\\{",
    "\\x41\\x{1F600}[\\x00-\\x7f]",
    "\\pL\\p{Greek}\\P{Lu}\\p{^Nd}",
    "a{,2}",
    "a{x}",
    "{",
    "ü😀+",
    "()",
    "a||b",
    "(a{30}){30}",
    "^*",
    "(?P<1>a)",
    "\\Qa.b\\E",
    "x".repeat(512),
  ],
  invalid: [
    "",
    "(",
    ")",
    "a)",
    "(a",
    "[",
    "[]",
    "[a",
    "[z-a]",
    "[a-\\d]",
    "*",
    "+a",
    "a|*",
    "(*a)",
    "(?i)*",
    "a**",
    "a+*",
    "a{2}{3}",
    "a{3,2}",
    "a{1001}",
    "a{2,1001}",
    "{2}",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "(?>a)",
    "(?#a)",
    "(?P=name)",
    "(?P<n>a)(?P<n>b)",
    "(a)\\1",
    "\\k<n>",
    "\\",
    "\\q",
    "\\Z",
    "\\x4",
    "\\x{110000}",
    "\\p{Klingon}",
    "[\\b]",
    "(a{1000}){1000}",
    "x".repeat(513),
  ],
});

test("never throws for random texts, and accepts only expressions that JavaScript also compiles, where the notations agree", () => {
  const random = randomOf(7);
  const alphabet = "ab()[]{}|*+?^$.\\-,123:<>=!Pd";
  let taken = 0;
  for (let count = 0; count < 20_000; count++) {
    const text = Array.from({ length: random.below(12) + 1 }, () => random.pick([...alphabet])).join("");
    if (regularExpressionProblem(text) !== undefined) continue;
    taken++;
    // Flags, ^] in classes and escapes differ in JavaScript; single braces require its old notation.
    if (/\(\?|\[\^?\]|\\|\[[^\]]*\[/.test(text) || /[$^]\{?[*+?{]/.test(text)) continue;
    assert.doesNotThrow(() => new RegExp(text), `${text} is taken`);
  }
  assert.ok(taken > 1_000);
});

test("reports constructs of other engines that RE2 lacks", () => {
  assert.match(regularExpressionProblem("(?=a)") ?? "", /uses look-around/);
  assert.match(regularExpressionProblem("(?<!a)") ?? "", /uses look-around/);
  assert.match(regularExpressionProblem("(a)\\1") ?? "", /uses back-references/);
  assert.match(regularExpressionProblem("a{1001}") ?? "", /invalid repeat count: `\{1001\}`/);
});
