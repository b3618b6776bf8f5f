import { formatAge } from "../duration.ts";

/** A google.protobuf.Timestamp as decoded from a message. */
export interface WireTime {
  readonly seconds: bigint;
  readonly nanos: number;
}

export function toMs(time: WireTime): number {
  return Number(time.seconds) * 1000 + Math.floor(time.nanos / 1_000_000);
}

export function toWireTime(epochMs: number): WireTime {
  const seconds = Math.floor(epochMs / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((epochMs - seconds * 1000) * 1_000_000) };
}

/** Returns the age of a time; empty without a time. */
export function age(time: WireTime | undefined, nowMs: number): string {
  return time === undefined ? "" : formatAge(nowMs - toMs(time));
}

/** Formats a time in RFC 3339 in UTC, with seconds; empty without a time. */
export function dateTime(time: WireTime | undefined): string {
  return time === undefined ? "" : new Date(toMs(time)).toISOString().replace(/\.\d+Z$/, "Z");
}
