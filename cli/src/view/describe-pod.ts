import type { ContainerStatus, ContainerTerminated } from "@forage/proto/forage/agent/v1/agent";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import type { Paint } from "../output/paint.ts";
import { renderEntries, renderSection } from "../output/sections.ts";
import { renderTable } from "../output/table.ts";
import { allAddresses } from "./addresses.ts";
import { labelText } from "./nodes.ts";
import { hostPorts, podProblem, podState } from "./pods.ts";
import { age, dateTime, toMs, type WireTime } from "./timestamp.ts";
import { podVolumeRows, volumeColumns, volumeRows } from "./volumes.ts";

/**
 * Describes a pod. `workload` is its workload, because older coordinators do not send the pod's own
 * template.
 */
export function describePod(
  pod: Pod,
  workload: ForageResource | undefined,
  nowMs: number,
  paint: Paint,
): string {
  const { status } = pod;
  const since = (time: WireTime | undefined): string =>
    time === undefined ? "" : `${dateTime(time)} (${age(time, nowMs)} ago)`;
  const head = renderEntries(
    [
      ["Pod", pod.name],
      ["Namespace", pod.namespace],
      ["UID", pod.uid],
      ["Workload", `${pod.workloadKind}/${pod.workloadName}`],
      ["Status", podState(pod)],
      ["Why", podProblem(pod)],
      ["Node", pod.nodeLost ? `${pod.node} (unreachable; the rest is its last known state)` : pod.node],
      ["Pod IP", allAddresses(status?.podIp ?? "", status?.podIps)],
      ["Host ports", hostPorts(pod)],
      ["Labels", labelText(pod.labels)],
      ["Created", since(pod.createdAt)],
      ["Started", since(status?.startedAt)],
      ["Ready since", status?.ready === true ? since(status.readyAt) : ""],
      ["Revision", pod.templateHash.slice(0, 12)],
      ["Stopped", pod.keptUntil === undefined ? "" : pod.stopReason],
      ["Kept until", dateTime(pod.keptUntil)],
    ],
    paint,
  );
  const containers = (status?.containers ?? []).map((container) =>
    renderSection(
      `${container.init ? "Init container" : "Container"} ${container.name}`,
      describeContainer(container, pod.keptUntil !== undefined, nowMs, paint),
      paint,
    ),
  );
  const volumes = pod.template === undefined ? volumeRows(workload) : podVolumeRows(pod.template);
  const volumeTable = volumes.length === 0 ? "" : renderTable(volumeColumns, volumes, { wide: false, paint });
  return head + containers.join("") + renderSection("Volumes", volumeTable, paint);
}

/**
 * Describes a container. With `kept`, the pod no longer exists, and this is the container's last
 * status.
 */
function describeContainer(container: ContainerStatus, kept: boolean, nowMs: number, paint: Paint): string {
  return renderEntries(
    [
      ["Image", container.image],
      ["State", kept ? lastStateText(container, nowMs) : stateText(container, nowMs)],
      ["Started", container.init || container.started ? "" : "no: its startup probe has not passed"],
      ["Ready", container.init ? "" : container.ready ? "yes" : "no"],
      ["Restarts", String(container.restartCount)],
      [
        "Last end",
        container.lastTermination === undefined ? "" : terminationText(container.lastTermination, nowMs),
      ],
      // The first of them is the last termination.
      [
        "Before",
        container.terminations
          .slice(1)
          .map((it) => terminationLine(it, nowMs))
          .join("\n"),
      ],
      ["ID", container.containerId],
    ],
    paint,
  );
}

/** Describes the state that the container had when its pod was stopped. */
function lastStateText(container: ContainerStatus, nowMs: number): string {
  const { state } = container;
  if (state?.$case === "running") return "was running when the pod was stopped";
  if (state?.$case !== "waiting") return stateText(container, nowMs);
  return stateText(
    { ...container, state: { ...state, value: { ...state.value, retryAt: undefined } } },
    nowMs,
  );
}

function stateText({ state }: ContainerStatus, nowMs: number): string {
  switch (state?.$case) {
    case "waiting": {
      const { reason, message, retryAt } = state.value;
      const retry = retryAt === undefined ? "" : `, next attempt at ${dateTime(retryAt)}`;
      return `waiting: ${reason}${message === "" ? "" : `: ${message}`}${retry}`;
    }
    case "running":
      return `running for ${age(state.value.startedAt, nowMs)}`;
    case "terminated":
      return terminationText(state.value, nowMs);
    case undefined:
      return "unknown";
    default:
      return state satisfies never;
  }
}

function terminationText(ended: ContainerTerminated, nowMs: number): string {
  const lines = ended.message.trim();
  return `${terminationLine(ended, nowMs)}${lines === "" ? "" : `; last lines:\n${lines}`}`;
}

/** Returns a text such as `exited with code 3 (Error) 12s ago after 3s`. */
function terminationLine(
  { exitCode, signal, reason, startedAt, finishedAt }: ContainerTerminated,
  nowMs: number,
): string {
  const how = signal > 0 ? `killed by signal ${signal}` : `exited with code ${exitCode}`;
  const why = reason === "" ? "" : ` (${reason})`;
  const when = finishedAt === undefined ? "" : ` ${age(finishedAt, nowMs)} ago`;
  const ran =
    startedAt === undefined || finishedAt === undefined ? "" : ` after ${age(startedAt, toMs(finishedAt))}`;
  return `${how}${why}${when}${ran}`;
}
