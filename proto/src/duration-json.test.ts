import assert from "node:assert/strict";
import { test } from "node:test";
import { durationFromJson, formatDuration, parseDuration } from "./duration-json.ts";

const SAME: Record<string, { seconds: bigint; nanos: number }> = {
  "0s": { seconds: 0n, nanos: 0 },
  "30s": { seconds: 30n, nanos: 0 },
  "1.500s": { seconds: 1n, nanos: 500_000_000 },
  "0.000001s": { seconds: 0n, nanos: 1000 },
  "0.000000001s": { seconds: 0n, nanos: 1 },
  "-0.250s": { seconds: 0n, nanos: -250_000_000 },
  "-3s": { seconds: -3n, nanos: 0 },
  "1000.100s": { seconds: 1000n, nanos: 100_000_000 },
  "315576000000s": { seconds: 315_576_000_000n, nanos: 0 },
};

for (const [text, duration] of Object.entries(SAME)) {
  test(`${text} is parsed and formatted`, () => {
    assert.deepEqual(parseDuration(text), duration);
    assert.equal(formatDuration(duration), text);
  });
}

test("up to nine decimals are parsed", () => {
  assert.deepEqual(parseDuration("1.5s"), { seconds: 1n, nanos: 500_000_000 });
  assert.deepEqual(parseDuration("0.12345s"), { seconds: 0n, nanos: 123_450_000 });
  assert.deepEqual(parseDuration("-0s"), { seconds: 0n, nanos: 0 });
});

for (const text of [
  "",
  "s",
  "1",
  "1m",
  "1.s",
  ".5s",
  " 1s",
  "1s\n",
  "+1s",
  "1e3s",
  "1.0000000001s",
  "315576000000.1s",
  "9999999999999s",
]) {
  test(`${JSON.stringify(text)} is not a duration`, () => {
    assert.equal(parseDuration(text), undefined);
    assert.throws(() => durationFromJson(text), RangeError);
  });
}

test("a duration in JSON must be a string", () => {
  assert.throws(() => durationFromJson({ seconds: 1 }), RangeError);
  assert.throws(() => durationFromJson(5), RangeError);
  assert.deepEqual(durationFromJson("5s"), { seconds: 5n, nanos: 0 });
});
