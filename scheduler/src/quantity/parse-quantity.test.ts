import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { SchedulerError } from "../scheduler-error.ts";
import { formatAmount, formatBytes, formatMilliCpu, formatQuantity } from "./format-quantity.ts";
import { amountOf, milliCpuOf, parseQuantity, plainAmountOf, wholeUnitsOf } from "./parse-quantity.ts";

test("parses every notation exactly", () => {
  const table: [string, bigint][] = [
    ["0", 0n],
    ["1", 10n ** 9n],
    [".5", 5n * 10n ** 8n],
    ["1.", 10n ** 9n],
    ["+2", 2n * 10n ** 9n],
    ["-1.5", -15n * 10n ** 8n],
    ["0.1", 10n ** 8n],
    ["100m", 10n ** 8n],
    ["1500u", 1_500_000n],
    ["7n", 7n],
    ["1e3", 10n ** 12n],
    ["1E3", 10n ** 12n],
    ["1e-1", 10n ** 8n],
    ["2e+2", 2n * 10n ** 11n],
    ["1E", 10n ** 27n],
    ["1k", 10n ** 12n],
    ["3M", 3n * 10n ** 15n],
    ["2G", 2n * 10n ** 18n],
    ["1T", 10n ** 21n],
    ["1P", 10n ** 24n],
    ["1Ki", 1024n * 10n ** 9n],
    ["0.5Gi", 2n ** 29n * 10n ** 9n],
    ["100.5Mi", 105_381_888n * 10n ** 9n],
    ["1Ti", 2n ** 40n * 10n ** 9n],
    ["1Pi", 2n ** 50n * 10n ** 9n],
    ["1Ei", 2n ** 60n * 10n ** 9n],
    ["9007199254740993", 9007199254740993n * 10n ** 9n],
  ];
  for (const [text, nano] of table) assert.equal(parseQuantity(text), nano, text);
});

test("rounds amounts finer than a billionth away from zero", () => {
  assert.equal(parseQuantity("0.1n"), 1n);
  assert.equal(parseQuantity("-0.1n"), -1n);
  assert.equal(parseQuantity("1e-12"), 1n);
});

test("rounds cpu up to thousandths and the rest up to whole units", () => {
  assert.equal(milliCpuOf("1500u"), 2);
  assert.equal(milliCpuOf("0.0005"), 1);
  assert.equal(milliCpuOf("1"), 1000);
  assert.equal(wholeUnitsOf("100m"), 1);
  assert.equal(wholeUnitsOf("2147483648000m"), 2147483648);
});

test("rejects everything else", () => {
  const bad = [
    "",
    " ",
    ".",
    "+",
    "-",
    "m",
    "1e3k",
    "1KI",
    "1ki",
    "1mm",
    "1 Gi",
    "0x10",
    "1e",
    "e3",
    "1,5",
    "Infinity",
    "NaN",
    "1e99",
  ];
  for (const text of [...bad, "1".repeat(65), "１"]) {
    assert.throws(() => parseQuantity(text), { code: "invalid_quantity" }, JSON.stringify(text));
  }
  assert.throws(() => milliCpuOf("-1"), { code: "invalid_quantity" });
  assert.throws(() => wholeUnitsOf("8Pi"), { code: "quantity_out_of_range" });
});

test("each text is parsed or rejected, and a formatted quantity can be parsed again", () => {
  const random = randomOf(7);
  const alphabet = [..."0123456789..--++eEnumkKMGTPi "];
  for (let i = 0; i < 20_000; i++) {
    const text = Array.from({ length: random.below(9) }, () => random.pick(alphabet)).join("");
    try {
      const nano = parseQuantity(text);
      assert.equal(parseQuantity(formatQuantity(nano)), nano, text);
    } catch (error) {
      assert.ok(error instanceof SchedulerError, text);
    }
  }
});

test("the fast path and the general one agree", () => {
  const random = randomOf(9);
  for (let i = 0; i < 20_000; i++) {
    const text = `${random.below(10 ** random.below(9))}${random.pick(["", "", "m", "Ki", "Mi", "Gi", "M", "k", "i", "mi"])}`;
    for (const resource of ["cpu", "memory"]) {
      const plain = plainAmountOf(resource, text);
      if (plain >= 0) assert.equal(plain, amountOf(resource, text), `${resource} ${text}`);
    }
  }
  assert.equal(plainAmountOf("cpu", "250m"), 250);
  assert.equal(plainAmountOf("memory", "3Gi"), 3 * 2 ** 30);
});

test("formats amounts for people", () => {
  assert.equal(formatQuantity(1_500_000n), "1500u");
  assert.equal(formatMilliCpu(250), "250m");
  assert.equal(formatMilliCpu(2000), "2");
  assert.equal(formatBytes(1.25 * 2 ** 30), "1.2Gi");
  assert.equal(formatBytes(1023), "1023");
  assert.equal(formatAmount("nvidia.com/gpu", 3), "3");
});
