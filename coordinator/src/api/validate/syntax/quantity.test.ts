import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRule } from "../../../../test/support/rules.ts";
import { amountOf, quantityProblem } from "./quantity.ts";

describeRule("quantityProblem of memory", (text: string) => quantityProblem("memory", text), {
  valid: ["0", "1", "128Mi", "1.5Gi", "1e3", "64E6", "100m", "+1"],
  invalid: [
    "",
    "-1",
    "1Mib",
    "1 Gi",
    "abc",
    "1e3k",
    "NaN",
    "Infinity",
    "0x10",
    "10E",
    "9".repeat(70),
    "1e999",
  ],
});

describeRule("quantityProblem of cpu", (text: string) => quantityProblem("cpu", text), {
  valid: ["100m", "0.5", "1500u", "64"],
  invalid: ["-100m", "1e15", "m"],
});

test("amounts are exact", () => {
  assert.equal(amountOf("cpu", "0.1").nano, 100_000_000n);
  assert.equal(amountOf("memory", "1Ki").nano, 1024n * 10n ** 9n);
});
