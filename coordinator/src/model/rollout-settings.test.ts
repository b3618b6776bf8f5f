import assert from "node:assert/strict";
import { test } from "node:test";
import { ROLLOUT_ANNOTATIONS, settingProblem, settingsOf } from "./rollout-settings.ts";

const CASES: Readonly<
  Record<
    keyof typeof ROLLOUT_ANNOTATIONS,
    { readonly valid: readonly string[]; readonly bad: readonly string[] }
  >
> = {
  changeCause: { valid: ["", "x".repeat(1_000)], bad: ["x".repeat(1_001)] },
  minReadySeconds: { valid: ["0", "3600"], bad: ["", "-1", "1.5", "3601"] },
  progressDeadline: { valid: ["1s", "24h", "1h30m"], bad: ["", "999ms", "86401s", "soon"] },
  rollback: { valid: ["on", "off"], bad: ["", "true", "onoff"] },
  canary: { valid: ["1", "99999", "1%", "100%"], bad: ["", "0", "0%", "101%", "100000"] },
  disruptionBudget: { valid: ["0", "99999", "0%", "100%"], bad: ["", "01", "101%", "100000"] },
};

for (const [setting, { valid, bad }] of Object.entries(CASES)) {
  const name = ROLLOUT_ANNOTATIONS[setting as keyof typeof ROLLOUT_ANNOTATIONS];
  test(`accepts only valid values of ${name}`, () => {
    for (const value of valid) assert.equal(settingProblem(name, value), undefined, value);
    for (const value of bad) assert.match(settingProblem(name, value) ?? "", /^must be /, value);
  });
}

test("ignores annotations with other names", () => {
  assert.equal(settingProblem("example.com/rollback", "maybe"), undefined);
});

test("rolls a failing revision back unless rollback is off", () => {
  const rollback = (value: string): boolean => settingsOf({ [ROLLOUT_ANNOTATIONS.rollback]: value }).rollback;
  assert.deepEqual(
    [settingsOf().rollback, rollback("on"), rollback("off"), rollback("maybe")],
    [true, true, false, true],
  );
});
