import type { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../model/event.ts";
import { nodeProblems } from "../model/node-conditions.ts";
import type { NodeEntry } from "../state/entries.ts";
import { refusedLabels, refusedLabelsMessage } from "../state/node-labels.ts";

/** Returns the events of a node between two states. */
export function nodeEvents(before: NodeEntry | undefined, after: NodeEntry | undefined): EventInput[] {
  const name = (after ?? before)?.name ?? "";
  const eventOf = (type: EventInput["type"], reason: string, message: string): EventInput => {
    return { namespace: "", kind: "node", name, node: name, type, reason, message };
  };
  if (after === undefined) return [eventOf("Normal", "NodeForgotten", "was removed")];
  if (before === undefined) return [eventOf("Normal", "NodeJoined", "has joined")];
  const events: EventInput[] = [];
  const add = (...event: Parameters<typeof eventOf>): void => void events.push(eventOf(...event));
  const { health, record, report } = after;
  // After a start, the coordinator assumes that nodes are ready, which is not an event.
  if (health.ready && !before.health.ready && health.lastSeenMs !== undefined)
    add("Normal", "NodeReady", "is connected and ready");
  if (!health.ready && before.health.ready) add("Warning", "NodeUnreachable", health.message);
  if (record.unschedulable && !before.record.unschedulable)
    add("Normal", "Cordoned", "accepts no new pods; existing pods stay");
  if (!record.unschedulable && before.record.unschedulable)
    add("Normal", "Uncordoned", "accepts new pods again");
  if (record.revoked && !before.record.revoked)
    add("Warning", "Revoked", "its certificates are rejected from now on");
  events.push(...taintEvents(before.record.taints, record.taints, eventOf));
  events.push(...problemEvents(before, after, eventOf));
  events.push(...labelEvents(before, after, eventOf));
  const damage = damageOf(after.report?.report);
  if (damage !== undefined && damage !== damageOf(before.report?.report))
    add("Warning", "DataDamaged", damage);
  const earlier = before.report;
  if (earlier === undefined || report === undefined) return events;
  if (earlier.bootId !== "" && earlier.bootId !== report.bootId)
    add("Warning", "Rebooted", "its host has rebooted");
  if (earlier.agentVersion !== "" && earlier.agentVersion !== report.agentVersion)
    add("Normal", "AgentChanged", `agent ${earlier.agentVersion} → ${report.agentVersion}`);
  return events;
}

type MakeEvent = (type: EventInput["type"], reason: string, message: string) => EventInput;

function taintEvents(
  before: readonly NodeTaint[],
  after: readonly NodeTaint[],
  eventOf: MakeEvent,
): EventInput[] {
  if (before === after) return [];
  const added = after.filter((taint) => !before.some((it) => sameTaint(it, taint)));
  const removed = before.filter(
    (taint) => !after.some((it) => it.key === taint.key && it.effect === taint.effect),
  );
  return [
    ...added.map((taint) => eventOf("Normal", "Tainted", `has the taint ${words(taint)}`)),
    ...removed.map((taint) => eventOf("Normal", "Untainted", `no longer has the taint ${words(taint)}`)),
  ];
}

function sameTaint(a: NodeTaint, b: NodeTaint): boolean {
  return a.key === b.key && a.effect === b.effect && a.value === b.value;
}

function words({ key, value, effect }: NodeTaint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}

function labelEvents(before: NodeEntry, after: NodeEntry, eventOf: MakeEvent): EventInput[] {
  if (before.report === after.report) return [];
  const refused = refusedLabels(after);
  if (refused.length === 0 || refused.join() === refusedLabels(before).join()) return [];
  return [eventOf("Warning", "LabelsRefused", refusedLabelsMessage(after.name, refused))];
}

/**
 * Compares problems by the names of their conditions, because their texts contain numbers that
 * change constantly.
 */
function problemEvents(before: NodeEntry, after: NodeEntry, eventOf: MakeEvent): EventInput[] {
  if (before.report === after.report) return [];
  const earlier = nodeProblems(before.report?.report);
  const now = nodeProblems(after.report?.report);
  const begun = now.filter(({ message }) => !earlier.some((it) => word(it.message) === word(message)));
  const over = earlier.filter(({ message }) => !now.some((it) => word(it.message) === word(message)));
  return [
    ...begun.map(({ message }) => eventOf("Warning", "NodeProblem", message)),
    ...over.map(({ message }) => eventOf("Normal", "NodeProblemOver", `${word(message)} is healthy again`)),
  ];
}

/**
 * Describes which of the agent's files are damaged. This affects no pod, so it is not a problem of
 * the node.
 */
function damageOf(report: NodeReport | undefined): string | undefined {
  return report?.conditions.find(({ type, status }) => type === "DataDamaged" && status)?.message;
}

/** Returns the name of the condition at the beginning of the message. */
function word(message: string): string {
  return message.slice(0, message.indexOf(":"));
}
