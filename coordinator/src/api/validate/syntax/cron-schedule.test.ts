import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRule } from "../../../../test/support/rules.ts";
import { cronScheduleProblem } from "./cron-schedule.ts";

describeRule("cronScheduleProblem", cronScheduleProblem, {
  valid: [
    "* * * * *",
    "*/5 * * * *",
    "0 4 1 * *",
    "59 23 31 12 7",
    "0,15,30-45/5 9-17 * * MON-FRI",
    "0 0 ? * ?",
    "5/10 * * jan,Mar-DEC sun",
    "0 0 29 2 *",
    "0 0 31 2 1",
    // With a step, the field restricts the day of the week.
    "0 0 31 2 */2",
    "  0   0 * * * ",
    "@yearly",
    "@hourly",
    "@midnight",
  ],
  invalid: [
    "",
    " ",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 13 *",
    "* * * 0 *",
    "* * * * 8",
    "5-1 * * * *",
    "* * * * FRI-MON",
    "*/0 * * * *",
    "*/x * * * *",
    "1//2 * * * *",
    "1-2-3 * * * *",
    ", * * * *",
    "1, * * * *",
    "L * * * *",
    "* * * * 5L",
    "* * 15W * *",
    "0 0 30 2 *",
    "0 0 31 4,6,9,11 *",
    "@every 5m",
    "@reboot",
    "@Hourly",
    "TZ=UTC 0 0 * * *",
    "CRON_TZ=UTC 0 0 * * *",
    `${"1,".repeat(200)}1 * * * *`,
  ],
});

test("reports the invalid field and its allowed values", () => {
  assert.equal(
    cronScheduleProblem("0 0 * FOO *"),
    `month "FOO" must be '*', numbers from 1 to 12, or JAN to DEC, with ',', '-' and '/'`,
  );
});
