import { messageOf } from "@forage/common/message-of";
import type { EventInput } from "../model/event.ts";
import { PREFIXES } from "../model/keys.ts";

/**
 * Prefixes of records without which the view is still usable: agents report statuses again, rollouts and kept pods are
 * history, and an unreadable token admits no client. Without any other record the coordinator would treat a pod, a node, a
 * policy or a scale as deleted, and would stop healthy containers or reassign addresses. So it doesn't start without them.
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

/** Returns the event for a record that the view has left out. */
export function unreadableRecord(key: string, error: unknown): EventInput {
  return {
    ...{ namespace: "", kind: "coordinator", name: "coordinator" },
    type: "Warning",
    reason: "RecordUnreadable",
    message: `record ${key} can't be decoded and is ignored; its last readable version stays in effect: ${messageOf(error)}`,
  };
}
