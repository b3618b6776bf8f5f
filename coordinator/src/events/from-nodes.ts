import type { NodeReport } from "@forage/proto/forage/agent/v1/agent";
import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../model/event.ts";
import { nodeProblems } from "../model/node-conditions.ts";
import type { NodeEntry } from "../state/entries.ts";
import { refusedLabels, refusedLabelsMessage } from "../state/node-labels.ts";

/** Returns the events of a node between two states. Pure. */
export function nodeEvents(before: NodeEntry | undefined, after: NodeEntry | undefined): EventInput[] {
  const name = (after ?? before)?.name ?? "";
  const told = (type: EventInput["type"], reason: string, message: string): EventInput => {
    return { namespace: "", kind: "node", name, node: name, type, reason, message };
  };
  if (after === undefined) return [told("Normal", "NodeForgotten", "was removed")];
  if (before === undefined) return [told("Normal", "NodeJoined", "has joined")];
  const events: EventInput[] = [];
  const tell = (...event: Parameters<typeof told>): void => void events.push(told(...event));
  const { health, record, report } = after;
  // After a start the coordinator counts its nodes as ready. That is not an event of the nodes.
  if (health.ready && !before.health.ready && health.lastSeenMs !== undefined)
    tell("Normal", "NodeReady", "is connected and ready");
  if (!health.ready && before.health.ready) tell("Warning", "NodeUnreachable", health.message);
  if (record.unschedulable && !before.record.unschedulable)
    tell("Normal", "Cordoned", "takes no new pods; those it has stay");
  if (!record.unschedulable && before.record.unschedulable)
    tell("Normal", "Uncordoned", "takes new pods again");
  if (record.revoked && !before.record.revoked)
    tell("Warning", "Revoked", "its certificates are refused from now on");
  events.push(...taintEvents(before.record.taints, record.taints, told));
  events.push(...problemEvents(before, after, told));
  events.push(...labelEvents(before, after, told));
  const damage = damageOf(after.report?.report);
  if (damage !== undefined && damage !== damageOf(before.report?.report))
    tell("Warning", "DataDamaged", damage);
  const earlier = before.report;
  if (earlier === undefined || report === undefined) return events;
  if (earlier.bootId !== "" && earlier.bootId !== report.bootId)
    tell("Warning", "Rebooted", "its host has rebooted");
  if (earlier.agentVersion !== "" && earlier.agentVersion !== report.agentVersion)
    tell("Normal", "AgentChanged", `agent ${earlier.agentVersion} → ${report.agentVersion}`);
  return events;
}

type MakeEvent = (type: EventInput["type"], reason: string, message: string) => EventInput;

function taintEvents(
  before: readonly NodeTaint[],
  after: readonly NodeTaint[],
  told: MakeEvent,
): EventInput[] {
  if (before === after) return [];
  const added = after.filter((taint) => !before.some((it) => sameTaint(it, taint)));
  const removed = before.filter(
    (taint) => !after.some((it) => it.key === taint.key && it.effect === taint.effect),
  );
  return [
    ...added.map((taint) => told("Normal", "Tainted", `has the taint ${words(taint)}`)),
    ...removed.map((taint) => told("Normal", "Untainted", `no longer has the taint ${words(taint)}`)),
  ];
}

function sameTaint(a: NodeTaint, b: NodeTaint): boolean {
  return a.key === b.key && a.effect === b.effect && a.value === b.value;
}

function words({ key, value, effect }: NodeTaint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}

function labelEvents(before: NodeEntry, after: NodeEntry, told: MakeEvent): EventInput[] {
  if (before.report === after.report) return [];
  const refused = refusedLabels(after);
  if (refused.length === 0 || refused.join() === refusedLabels(before).join()) return [];
  return [told("Warning", "LabelsRefused", refusedLabelsMessage(after.name, refused))];
}

/** Compares problems by their taint, because the text of a problem contains numbers that change all the time. */
function problemEvents(before: NodeEntry, after: NodeEntry, told: MakeEvent): EventInput[] {
  if (before.report === after.report) return [];
  const earlier = nodeProblems(before.report?.report);
  const now = nodeProblems(after.report?.report);
  const begun = now.filter(({ message }) => !earlier.some((it) => word(it.message) === word(message)));
  const over = earlier.filter(({ message }) => !now.some((it) => word(it.message) === word(message)));
  return [
    ...begun.map(({ message }) => told("Warning", "NodeProblem", message)),
    ...over.map(({ message }) => told("Normal", "NodeProblemOver", `${word(message)} is well again`)),
  ];
}

/** Returns which of the agent's files are damaged, in words. It hinders no pod, so it is no problem of the node. */
function damageOf(report: NodeReport | undefined): string | undefined {
  return report?.conditions.find(({ type, status }) => type === "DataDamaged" && status)?.message;
}

/** The name of the condition, with which the message begins. */
function word(message: string): string {
  return message.slice(0, message.indexOf(":"));
}
