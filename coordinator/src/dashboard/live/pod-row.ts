import { type ContainerStatus, PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import { toEpochMs } from "../../model/timestamp.ts";
import type { PodRow, Tone } from "./rows.ts";

/**
 * The length limit of a message in a row. Messages of containers can contain output; the page of
 * the pod shows them in full.
 */
const MAX_MESSAGE_CHARACTERS = 200;
const REVISION_CHARACTERS = 6;

export function podRow(pod: Pod): PodRow {
  const main = (pod.status?.containers ?? []).filter(({ init }) => !init);
  const all = pod.status?.containers ?? [];
  const percent = waitingIn(all)?.pulledPercent;
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    workload: `${pod.workloadKind}/${pod.workloadName}`,
    node: pod.node,
    state: stateOf(pod),
    tone: toneOf(pod),
    message: shortened(problemOf(pod)),
    ...(percent !== undefined && { pulledPercent: percent }),
    ready: main.filter(({ ready }) => ready).length,
    containers: main.length,
    restarts: all.reduce((sum, { restartCount }) => sum + restartCount, 0),
    createdMs: toEpochMs(pod.createdAt) ?? 0,
    revision: pod.templateHash.slice(0, REVISION_CHARACTERS),
    ip: pod.status?.podIp ?? "",
  };
}

function stateOf(pod: Pod): string {
  const { status } = pod;
  if (pod.stopping) return "Stopping";
  if (pod.nodeLost) return "NodeLost";
  if (pod.unschedulable !== "") return "Unschedulable";
  if (status === undefined) return pod.node === "" ? "Pending" : "Placed";
  const waiting = waitingIn(status.containers);
  if (waiting !== undefined && waiting.reason !== "") return waiting.reason;
  if (status.reason !== "") return status.reason;
  if (status.phase === PodPhase.RUNNING && pod.draining !== "") return "Draining";
  switch (status.phase) {
    case PodPhase.RUNNING:
      return status.ready ? "Running" : "NotReady";
    case PodPhase.SUCCEEDED:
      return "Succeeded";
    case PodPhase.FAILED:
      return "Failed";
    case PodPhase.STOPPING:
    case PodPhase.REMOVED:
      return "Stopping";
    default:
      return "Starting";
  }
}

/** The reasons to wait during a normal start. Any other reason counts as a problem. */
const ON_THE_WAY = new Set(["ContainerCreating", "PodInitializing", "ImagePull", ""]);

function toneOf(pod: Pod): Tone {
  const { status } = pod;
  if (pod.stopping || status?.phase === PodPhase.SUCCEEDED) return "off";
  if (pod.nodeLost || pod.unschedulable !== "" || status?.phase === PodPhase.FAILED) return "bad";
  if (status?.ready === true) return pod.draining === "" ? "good" : "busy";
  const waiting = waitingIn(status?.containers ?? []);
  return waiting !== undefined && !ON_THE_WAY.has(waiting.reason) ? "bad" : "busy";
}

function problemOf(pod: Pod): string {
  if (pod.stopping) return pod.stopReason;
  if (pod.nodeLost) return `node ${pod.node} is unreachable`;
  if (pod.unschedulable !== "") return pod.unschedulable;
  if (pod.status === undefined || pod.status.ready) return "";
  const waiting = waitingIn(pod.status.containers);
  return waiting !== undefined && waiting.message !== "" ? waiting.message : pod.status.message;
}

function waitingIn(containers: readonly ContainerStatus[]) {
  for (const { state } of containers) if (state?.$case === "waiting") return state.value;
  return undefined;
}

function shortened(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > MAX_MESSAGE_CHARACTERS ? `${line.slice(0, MAX_MESSAGE_CHARACTERS)}…` : line;
}
