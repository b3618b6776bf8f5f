import type { PodStatusRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../model/timestamp.ts";
import type { PodEntry } from "./entries.ts";

/** Returns the part of a pod's entry that comes from its node's reports. */
export function statusOf(
  record: PodStatusRecord | undefined,
): Pick<PodEntry, "status" | "observedAtMs" | "readySinceMs"> {
  const { status, observedAt, readySince } = record ?? {};
  return { status, observedAtMs: toEpochMs(observedAt), readySinceMs: toEpochMs(readySince) };
}
