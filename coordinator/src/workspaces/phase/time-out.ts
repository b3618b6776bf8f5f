import { WorkspacePhase } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toEpochMs } from "../../model/timestamp.ts";
import { formatHoursMinutes, parseGoDuration } from "../go-duration.ts";
import type { Observation } from "./observation.ts";
import { isHeadless } from "./status.ts";

/** The end of a time that an instance may take for something. */
export interface Deadline {
  readonly atMs: number;
  /** The time that is limited, for the condition's text. */
  readonly activity: string;
  readonly sinceMs: number;
  readonly limitMs: number;
}

/** Heartbeats in which users' editors may reconnect after a start of the coordinator before they count as idle. */
const RECONNECT_HEARTBEATS = 3;

/** Pure: the deadlines that apply to the instance, in the order in which they are checked. None once a stop is ordered. */
export function deadlinesOf(record: InstanceRecord, observation: Observation): readonly Deadline[] {
  if (record.stop !== undefined) return [];
  const { timeouts } = observation.settings;
  const createdMs = toEpochMs(record.createdAt) ?? observation.nowMs;
  const since = (activity: string, sinceMs: number, limitMs: number): Deadline => ({
    ...{ activity, sinceMs, limitMs },
    atMs: sinceMs + limitMs,
  });
  const lifetime = since("maximum lifetime", createdMs, timeouts.maxLifetimeSeconds * 1000);
  const startupMs = timeouts.startupSeconds * 1000;
  switch (record.phase) {
    case WorkspacePhase.UNKNOWN:
    case WorkspacePhase.PENDING:
      return [lifetime, since("initialization", createdMs, timeouts.initializationSeconds * 1000)];
    case WorkspacePhase.CREATING:
    case WorkspacePhase.INITIALIZING:
      return [lifetime, since("startup", createdMs, startupMs)];
    default:
      break;
  }
  const customMs = customTimeoutMs(record);
  if (isHeadless(record.type))
    return [
      lifetime,
      since("running the headless workspace", createdMs, customMs ?? timeouts.headlessSeconds * 1000),
    ];
  return [
    lifetime,
    ...idleDeadlines(record, observation, customMs, since("startup without activity", createdMs, startupMs)),
  ];
}

function idleDeadlines(
  record: InstanceRecord,
  { activity, settings, upSinceMs }: Observation,
  customMs: number | undefined,
  unused: Deadline,
): Deadline[] {
  const { timeouts } = settings;
  const graceMs = upSinceMs + RECONNECT_HEARTBEATS * timeouts.heartbeatSeconds * 1000;
  const later = (deadline: Deadline): Deadline => ({ ...deadline, atMs: Math.max(deadline.atMs, graceMs) });
  const lastMs = toEpochMs(activity?.lastActivity);
  if (activity === undefined || lastMs === undefined) {
    const limitMs = Math.max(unused.limitMs, customMs ?? 0);
    return [later({ ...unused, limitMs, atMs: unused.sinceMs + limitMs })];
  }
  const idle = (name: string, limitMs: number): Deadline =>
    later({ activity: name, sinceMs: lastMs, limitMs, atMs: lastMs + limitMs });
  const regular = idle("period of inactivity", customMs ?? timeouts.regularSeconds * 1000);
  if (!activity.closed || record.closedTimeoutOff) return [regular];
  return [idle("after being closed", timeouts.afterCloseSeconds * 1000), regular];
}

/** The time-out set by SetTimeout, else that of the start request; undefined: the default applies. */
function customTimeoutMs({ customTimeout, spec }: InstanceRecord): number | undefined {
  const text = customTimeout === "" ? (spec?.timeout ?? "") : customTimeout;
  return text === "" ? undefined : parseGoDuration(text);
}

/** Returns the text of the timeout condition. */
export function timeoutText({ activity, sinceMs, limitMs }: Deadline, nowMs: number): string {
  return `workspace timed out after ${activity} (${formatHoursMinutes(nowMs - sinceMs)}) took longer than ${formatHoursMinutes(limitMs)}`;
}
