import { messageOf } from "@forage/common/message-of";
import type { EventInput } from "../model/event.ts";
import { PREFIXES } from "../model/keys.ts";

/**
 * Records that the view can do without: agents report statuses again, rollouts and kept pods are history, and an unreadable token
 * admits no client. Without any other record the coordinator would decide wrongly: it would treat a pod, a node, a policy or a scale
 * as deleted, and end healthy containers or reassign addresses. So it does not start without those.
 */
const DISPENSABLE: readonly string[] = [
  PREFIXES.statuses,
  PREFIXES.keptPods,
  PREFIXES.reports,
  PREFIXES.rollouts,
  PREFIXES.apiTokens,
];

export function isDispensable(key: string): boolean {
  return DISPENSABLE.some((prefix) => key.startsWith(prefix));
}

/** Returns the event for a record that the view left out. */
export function unreadableRecord(key: string, error: unknown): EventInput {
  return {
    ...{ namespace: "", kind: "coordinator", name: "coordinator" },
    type: "Warning",
    reason: "RecordUnreadable",
    message: `record ${key} can't be read and is left out; what was known of it before stays: ${messageOf(error)}`,
  };
}
