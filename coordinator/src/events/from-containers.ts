import type { ContainerStatus, ContainerTerminated } from "@forage/proto/forage/agent/v1/agent";
import type { EventInput } from "../model/event.ts";

/** An event without its object, which the caller adds. */
export type ContainerEvent = Pick<EventInput, "type" | "reason" | "message">;

/** The reasons of containers that wait during a normal start. */
const USUAL: ReadonlySet<string> = new Set(["", "ContainerCreating", "PodInitializing", "ImagePull"]);

/** Returns the events of a pod's containers between two reports of its node. */
export function containerEvents(
  before: readonly ContainerStatus[],
  after: readonly ContainerStatus[],
): ContainerEvent[] {
  const earlier = new Map(before.map((container) => [container.name, container]));
  return after.flatMap((container) => changes(earlier.get(container.name), container));
}

function changes(before: ContainerStatus | undefined, after: ContainerStatus): ContainerEvent[] {
  return [
    ...pulling(before, after),
    ...endings(before, after),
    ...waiting(before, after),
    ...running(before, after),
  ];
}

function pulling(before: ContainerStatus | undefined, after: ContainerStatus): ContainerEvent[] {
  const pulls = waitsFor(after) === "ImagePull";
  const pulled = before !== undefined && waitsFor(before) === "ImagePull";
  if (pulls && !pulled) return [normal("Pulling", `container ${after.name}: pulling ${after.image}`)];
  const arrived = pulled && !pulls && USUAL.has(waitsFor(after) ?? "");
  return arrived ? [normal("Pulled", `container ${after.name}: ${after.image} is on the node`)] : [];
}

/**
 * Returns the terminations of a container since the last status, including those between two
 * reports that the node still keeps.
 */
function endings(before: ContainerStatus | undefined, after: ContainerStatus): ContainerEvent[] {
  const known = before === undefined ? [] : endsOf(before);
  const fresh = endsOf(after).filter((ended) => !known.some((it) => sameEnd(it, ended)));
  return fresh.reverse().map((ended) => endEvent(after.name, ended));
}

function endEvent(name: string, ended: ContainerTerminated): ContainerEvent {
  const message = `container ${name} ${describeEnd(ended)}`;
  const { exitCode, signal, reason } = ended;
  if (exitCode === 0 && signal === 0 && (reason === "Completed" || reason === ""))
    return normal("ContainerCompleted", message);
  return {
    type: "Warning",
    reason: reason === "" || reason === "Error" ? "ContainerFailed" : reason,
    message,
  };
}

function waiting(before: ContainerStatus | undefined, after: ContainerStatus): ContainerEvent[] {
  if (after.state?.$case !== "waiting") return [];
  const { reason, message } = after.state.value;
  if (USUAL.has(reason) || (before !== undefined && waitsFor(before) === reason)) return [];
  return [
    { type: "Warning", reason, message: `container ${after.name}: ${message === "" ? reason : message}` },
  ];
}

function running(before: ContainerStatus | undefined, after: ContainerStatus): ContainerEvent[] {
  if (after.state?.$case !== "running") return [];
  const same =
    before?.state?.$case === "running" &&
    before.containerId === after.containerId &&
    before.restartCount === after.restartCount;
  if (same) return [];
  const ended = lastEnd(after);
  if (after.restartCount === 0 || ended === undefined)
    return [normal("Started", `container ${after.name} has started`)];
  return [normal("Restarted", `container ${after.name} has restarted after it ${endWord(ended)}`)];
}

function waitsFor({ state }: ContainerStatus): string | undefined {
  return state?.$case === "waiting" ? state.value.reason : undefined;
}

function lastEnd({ state, lastTermination }: ContainerStatus): ContainerTerminated | undefined {
  return state?.$case === "terminated" ? state.value : lastTermination;
}

/** Returns the terminations in a status, newest first. */
function endsOf(container: ContainerStatus): ContainerTerminated[] {
  const { terminations } = container;
  const last = lastEnd(container);
  if (last === undefined || terminations.some((it) => sameEnd(it, last))) return [...terminations];
  return [last, ...terminations];
}

function sameEnd(a: ContainerTerminated, b: ContainerTerminated): boolean {
  return (
    a.finishedAt?.seconds === b.finishedAt?.seconds &&
    a.finishedAt?.nanos === b.finishedAt?.nanos &&
    a.exitCode === b.exitCode &&
    a.reason === b.reason
  );
}

/** Describes a termination, such as `exited with code 3 (Error); last lines: …`. */
export function describeEnd(ended: ContainerTerminated): string {
  const lines = ended.message.trim();
  return `${endWord(ended)}${lines === "" ? "" : `; last lines: ${lines}`}`;
}

function endWord({ exitCode, signal, reason }: ContainerTerminated): string {
  const how = signal > 0 ? `was killed by signal ${signal}` : `exited with code ${exitCode}`;
  return reason === "" || reason === "Completed" ? how : `${how} (${reason})`;
}

function normal(reason: string, message: string): ContainerEvent {
  return { type: "Normal", reason, message };
}
