import type { Event, EventFilter } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";

/** Returns the event in the JSON form of the API. Fields that do not apply are omitted. */
export function eventJson(event: Event): Record<string, unknown> {
  const { namespace, workloadKind, workloadName, node, rolloutId } = event;
  const time = (ms: number | undefined): string | undefined =>
    ms === undefined ? undefined : new Date(ms).toISOString();
  return {
    sequence: Number(event.sequence),
    ...(namespace !== "" && { namespace }),
    kind: event.kind,
    name: event.name,
    type: event.type,
    reason: event.reason,
    message: event.message,
    count: event.count,
    firstAt: time(toEpochMs(event.firstAt)),
    lastAt: time(toEpochMs(event.lastAt)),
    ...(workloadName !== "" && { workload: { kind: workloadKind, name: workloadName } }),
    ...(node !== "" && { node }),
    ...(rolloutId !== "" && { rolloutId }),
  };
}

/**
 * Parses the filter in the query: `kind`, `name`, `type`, `reason`, `since` (RFC 3339). Throws
 * INVALID.
 */
export function eventFilterOf(query: (name: string) => string | undefined): EventFilter {
  const {
    kind = "",
    name = "",
    type = "",
    reason = "",
  } = {
    kind: query("kind"),
    name: query("name"),
    type: query("type"),
    reason: query("reason"),
  };
  const since = query("since");
  return { kind, name, type, reason, since: since === undefined ? undefined : toTimestamp(timeOf(since)) };
}

/** Parses a non-negative whole number; undefined if there is none. Throws INVALID. */
export function numberOf(what: string, text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new CoordinatorError("INVALID", `${what} must be a number, 0 or above`);
}

function timeOf(text: string): number {
  const ms = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms))
    throw new CoordinatorError("INVALID", "since must be a time such as 2026-01-31T12:00:00Z");
  return ms;
}
