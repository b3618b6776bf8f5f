import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";

// The range of a Timestamp: 0001-01-01 to 9999-12-31.
const FIRST_MS = -62_135_596_800_000;
const LAST_MS = 253_402_300_799_999;

/** Converts any number. Clamps invalid times, which must not prevent the rest of a message from being sent. */
export function toTimestamp(ms: number): Timestamp {
  const known = Number.isNaN(ms) ? 0 : Math.min(LAST_MS, Math.max(FIRST_MS, ms));
  const seconds = Math.floor(known / 1000);
  return {
    seconds: BigInt(seconds),
    nanos: Math.min(999_999_999, Math.round((known - seconds * 1000) * 1_000_000)),
  };
}
