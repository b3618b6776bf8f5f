import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAge, parseDurationMs } from "./duration.ts";

test("parses durations", () => {
  const cases: Record<string, number> = {
    "30s": 30_000,
    "5m": 300_000,
    "1h30m": 5_400_000,
    "1.5s": 1_500,
    "250ms": 250,
    "7d": 604_800_000,
    "1d2h3m4s5ms": 93_784_005,
  };
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDurationMs(text), ms, text);
});

test("refuses texts that are not durations", () => {
  for (const text of ["", "5", "m", "5 m", "-5s", "0s", "1s1m", "1e3s", "99999999999999999999d", "5M"]) {
    assert.equal(parseDurationMs(text), undefined, text);
  }
});

test("shows ages by their two largest units, and never rounds up", () => {
  const cases: [number, string][] = [
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [192_000, "3m12s"],
    [60_000, "1m"],
    [3_600_000, "1h"],
    [7_322_000, "2h2m"],
    [86_400_000 * 12 + 3_600_000 * 4 + 59_000, "12d4h"],
    [86_400_000 + 59_000, "1d"],
  ];
  for (const [ms, text] of cases) assert.equal(formatAge(ms), text);
});
