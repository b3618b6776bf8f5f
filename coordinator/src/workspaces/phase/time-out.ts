import { WorkspacePhase } from "@forage/proto/core";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toEpochMs } from "../../model/timestamp.ts";
import { formatHoursMinutes, parseGoDuration } from "../go-duration.ts";
import { type Observation, presentTime } from "./observation.ts";
import { isHeadless } from "./status.ts";

/** A time limit that applies to an instance at present. */
export interface Deadline {
  readonly atMs: number;
  /** The name of what is limited, for the text of the condition. */
  readonly activity: string;
  readonly sinceMs: number;
  readonly limitMs: number;
}

/**
 * The number of heartbeats that editors and nodes have to reconnect after a start of the
 * coordinator, before users count as idle and nodes as away.
 */
const RECONNECT_HEARTBEATS = 3;

/**
 * Returns the deadlines that apply to the instance, in the order in which they are checked. Empty
 * once a stop is ordered.
 */
export function deadlinesOf(record: InstanceRecord, observation: Observation): readonly Deadline[] {
  if (record.stop !== undefined) return [];
  const { timeouts } = observation.settings;
  const { upSinceMs } = observation;
  const createdMs = presentTime(toEpochMs(record.createdAt) ?? observation.nowMs, observation);
  // Progress up to here needs the coordinator, so time without it does not count.
  const begunMs = Math.max(createdMs, upSinceMs);
  const since = (activity: string, sinceMs: number, limitMs: number): Deadline => ({
    ...{ activity, sinceMs, limitMs },
    atMs: sinceMs + limitMs,
  });
  const lifetime = since("maximum lifetime", createdMs, timeouts.maxLifetimeSeconds * 1000);
  const startupMs = timeouts.startupSeconds * 1000;
  switch (record.phase) {
    case WorkspacePhase.UNKNOWN:
    case WorkspacePhase.PENDING:
      return [lifetime, since("initialization", begunMs, timeouts.initializationSeconds * 1000)];
    case WorkspacePhase.CREATING:
    case WorkspacePhase.INITIALIZING:
      return [lifetime, since("startup", begunMs, startupMs)];
    default:
      break;
  }
  const customMs = customTimeoutMs(record);
  const interruptedMs = toEpochMs(record.interruptedSince);
  const always =
    interruptedMs === undefined
      ? [lifetime]
      : [
          lifetime,
          // Time in which the coordinator was away does not count as an interruption by the node.
          since(
            "interruption",
            Math.max(presentTime(interruptedMs, observation), upSinceMs),
            timeouts.interruptedSeconds * 1000,
          ),
        ];
  if (isHeadless(record.type))
    return [
      ...always,
      since("running the headless workspace", createdMs, customMs ?? timeouts.headlessSeconds * 1000),
    ];
  return [
    ...always,
    ...idleDeadlines(record, observation, customMs, since("startup without activity", createdMs, startupMs)),
  ];
}

function idleDeadlines(
  record: InstanceRecord,
  observation: Observation,
  customMs: number | undefined,
  unused: Deadline,
): Deadline[] {
  const { activity, settings } = observation;
  const { timeouts } = settings;
  const graceMs = reconnectedMs(observation);
  const later = (deadline: Deadline): Deadline => ({ ...deadline, atMs: Math.max(deadline.atMs, graceMs) });
  const recordedMs = toEpochMs(activity?.lastActivity);
  if (activity === undefined || recordedMs === undefined) {
    const limitMs = Math.max(unused.limitMs, customMs ?? 0);
    return [later({ ...unused, limitMs, atMs: unused.sinceMs + limitMs })];
  }
  const lastMs = presentTime(recordedMs, observation);
  const idle = (name: string, limitMs: number): Deadline =>
    later({ activity: name, sinceMs: lastMs, limitMs, atMs: lastMs + limitMs });
  const regular = idle("period of inactivity", customMs ?? timeouts.regularSeconds * 1000);
  if (!activity.closed || record.closedTimeoutOff) return [regular];
  return [idle("after being closed", timeouts.afterCloseSeconds * 1000), regular];
}

/** Returns the time until which users and nodes may reconnect after a start of the coordinator. */
export function reconnectedMs({ upSinceMs, settings }: Observation): number {
  return upSinceMs + RECONNECT_HEARTBEATS * settings.timeouts.heartbeatSeconds * 1000;
}

/**
 * Returns the time-out set by SetTimeout, else that of the start request; undefined if the default
 * applies.
 */
function customTimeoutMs({ customTimeout, spec }: InstanceRecord): number | undefined {
  const text = customTimeout === "" ? (spec?.timeout ?? "") : customTimeout;
  return text === "" ? undefined : parseGoDuration(text);
}

/** Returns the text of the timeout condition. */
export function timeoutText({ activity, sinceMs, limitMs }: Deadline, nowMs: number): string {
  return `workspace timed out after ${activity} (${formatHoursMinutes(nowMs - sinceMs)}) took longer than ${formatHoursMinutes(limitMs)}`;
}
