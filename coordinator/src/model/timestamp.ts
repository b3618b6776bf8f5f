import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";

export function toTimestamp(epochMs: number): Timestamp {
  const seconds = Math.floor(epochMs / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((epochMs - seconds * 1000) * 1e6) };
}

/** Returns milliseconds since the epoch. Undefined stays undefined. */
export function toEpochMs(timestamp: Timestamp): number;
export function toEpochMs(timestamp: Timestamp | undefined): number | undefined;
export function toEpochMs(timestamp: Timestamp | undefined): number | undefined {
  return timestamp && Number(timestamp.seconds) * 1000 + timestamp.nanos / 1e6;
}
