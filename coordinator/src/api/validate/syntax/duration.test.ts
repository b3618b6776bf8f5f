import { describeRule } from "../../../../test/support/rules.ts";
import { durationProblem } from "./duration.ts";

describeRule("durationProblem", (value: { seconds: bigint; nanos: number }) => durationProblem(value, 60), {
  valid: [
    { seconds: 0n, nanos: 0 },
    { seconds: 0n, nanos: 1 },
    { seconds: 60n, nanos: 0 },
    { seconds: 59n, nanos: 999_999_999 },
  ],
  invalid: [
    { seconds: 60n, nanos: 1 },
    { seconds: 61n, nanos: 0 },
    { seconds: -1n, nanos: 0 },
    { seconds: 0n, nanos: -1 },
    { seconds: 1n, nanos: -1 },
    { seconds: -1n, nanos: 1 },
    { seconds: 0n, nanos: 1_000_000_000 },
    { seconds: 10n ** 15n, nanos: 0 },
  ],
});
