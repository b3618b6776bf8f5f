import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";

/** Go's zero time, in the year 1, which Nomad expects for an unknown time. */
export const ZERO_TIME: Timestamp = { seconds: -62_135_596_800n, nanos: 0 };

/** Converts milliseconds since the epoch. Undefined becomes Go's zero time. */
export function toTimestamp(atMs: number | undefined): Timestamp {
  if (atMs === undefined) return ZERO_TIME;
  const seconds = Math.floor(atMs / 1_000);
  return { seconds: BigInt(seconds), nanos: Math.floor((atMs - seconds * 1_000) * 1e6) };
}
