import type { Duration } from "@forage/proto/google/protobuf/duration";

/** The limit of google.protobuf.Duration in seconds: 10,000 years. */
const LIMIT_SECONDS = 315_576_000_000n;

/** Returns what is wrong with the duration, which must be valid, not negative and within the limit. Undefined: nothing. */
export function durationProblem({ seconds, nanos }: Duration, maxSeconds: number): string | undefined {
  const outOfRange = seconds > LIMIT_SECONDS || seconds < -LIMIT_SECONDS || Math.abs(nanos) > 999_999_999;
  if (outOfRange || (seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0))
    return "is not a duration such as 1.5s";
  if (seconds < 0n || nanos < 0) return "must not be negative";
  const tooLong = seconds > BigInt(maxSeconds) || (seconds === BigInt(maxSeconds) && nanos > 0);
  return tooLong ? `must be at most ${maxSeconds}s` : undefined;
}
