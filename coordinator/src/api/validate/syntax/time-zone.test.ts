import { describeRule } from "../../../../test/support/rules.ts";
import { timeZoneProblem } from "./time-zone.ts";

describeRule("timeZoneProblem", timeZoneProblem, {
  valid: ["", "UTC", "Europe/Copenhagen", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Asia/Kolkata"],
  invalid: [
    "Local",
    "+01:00",
    "Europe/Kopenhagen",
    "Europe",
    "/etc/localtime",
    "../UTC",
    "UTC\0",
    "x".repeat(65),
  ],
});
