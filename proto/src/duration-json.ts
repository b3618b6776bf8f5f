// google.protobuf.Duration as proto3 JSON has it: "1.5s". The generated code would read an object {seconds, nanos} and
// turn any string into zero, so its Duration calls durationFromJson and formatDuration instead.

export interface DurationValue {
  readonly seconds: bigint;
  /** Nanoseconds with the sign of the seconds, below 1e9 in magnitude. */
  readonly nanos: number;
}

// The range of google.protobuf.Duration: 10,000 years.
const LIMIT_SECONDS = 315_576_000_000n;
const TEXT = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

/** Parses decimal seconds followed by "s". Returns `undefined` for other text and beyond the range of Duration. */
export function parseDuration(text: string): DurationValue | undefined {
  const match = TEXT.exec(text);
  if (match === null) {
    return undefined;
  }
  const [, minus = "", whole = "", fraction = ""] = match;
  const seconds = BigInt(whole);
  const nanos = Number(fraction.padEnd(9, "0"));
  if (seconds > LIMIT_SECONDS || (seconds === LIMIT_SECONDS && nanos > 0)) {
    return undefined;
  }
  return minus === "" ? { seconds, nanos } : { seconds: -seconds, nanos: nanos === 0 ? 0 : -nanos };
}

/** Formats a duration with 0, 3, 6 or 9 decimals, the shortest exact form. */
export function formatDuration({ seconds, nanos }: DurationValue): string {
  const minus = seconds < 0n || nanos < 0 ? "-" : "";
  const whole = seconds < 0n ? -seconds : seconds;
  const decimals = String(Math.abs(nanos))
    .padStart(9, "0")
    .replace(/(000){1,3}$/, "");
  return `${minus}${whole}${decimals === "" ? "" : `.${decimals}`}s`;
}

/**
 * Implements Duration.fromJSON. @throws RangeError if the value isn't a duration; check manifests with `parseDuration`
 * first.
 */
export function durationFromJson(value: unknown): { seconds: bigint; nanos: number } {
  const duration = typeof value === "string" ? parseDuration(value) : undefined;
  if (duration === undefined) {
    throw new RangeError(`not a duration such as "1.5s": ${JSON.stringify(value)}`);
  }
  return { ...duration };
}
