import {
  type ContainerStatus,
  type ContainerTerminated,
  PodPhase,
  type PodStatus,
} from "@forage/proto/forage/agent/v1/agent";
import type { Pod } from "@forage/proto/forage/operator/v1/operator";
import type { Style } from "../output/paint.ts";
import type { Column } from "../output/table.ts";
import { age, dateTime } from "./timestamp.ts";

/** The length of a uid's prefix: long enough to distinguish pods, and short enough to type. */
const SHORT_UID_LENGTH = 8;

export function podColumns({
  nowMs,
  withNamespace,
}: {
  readonly nowMs: number;
  readonly withNamespace: boolean;
}): Column<Pod>[] {
  const namespace: Column<Pod> = { title: "NAMESPACE", value: (pod) => pod.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "POD", value: (pod) => pod.name },
    { title: "READY", value: readyContainers },
    { title: "STATUS", value: podState, style: podStyle },
    { title: "RESTARTS", value: (pod) => String(restarts(pod)), alignRight: true },
    { title: "AGE", value: (pod) => age(pod.createdAt, nowMs), alignRight: true },
    { title: "NODE", value: (pod) => pod.node },
    { title: "UID", value: (pod) => shortUid(pod.uid), wide: true },
    { title: "WORKLOAD", value: (pod) => `${pod.workloadKind}/${pod.workloadName}`, wide: true },
    { title: "POD IP", value: (pod) => pod.status?.podIp ?? "", wide: true },
    { title: "HOST PORTS", value: hostPorts, wide: true },
    {
      title: "IMAGES",
      value: (pod) => (pod.status?.containers ?? []).map(({ image }) => image).join(","),
      wide: true,
    },
    { title: "WHY", value: podProblem, whenFilled: true },
  ];
}

export function shortUid(uid: string): string {
  return uid.slice(0, SHORT_UID_LENGTH);
}

/** Returns the state of a pod in one word. */
export function podState(pod: Pod): string {
  if (pod.keptUntil !== undefined) return "Failed";
  if (pod.stopping) return "Stopping";
  if (pod.nodeLost) return "NodeLost";
  if (pod.unschedulable !== "") return "Unplaced";
  if (pod.status === undefined) return pod.node === "" ? "Unplaced" : "Starting";
  const waiting = pod.status.containers.find(({ state }) => state?.$case === "waiting");
  if (waiting?.state?.$case === "waiting" && waiting.state.value.reason !== "")
    return waiting.state.value.reason;
  if (pod.status.reason !== "") return pod.status.reason;
  if (pod.status.phase === PodPhase.RUNNING && pod.draining !== "") return "Draining";
  if (pod.status.phase === PodPhase.RUNNING) return pod.status.ready ? "Running" : "NotReady";
  return phaseName(pod.status.phase);
}

/** Returns the reason why a pod is not ready, or an empty text. */
export function podProblem(pod: Pod): string {
  if (pod.keptUntil !== undefined) return keptProblem(pod);
  if (pod.unschedulable !== "") return pod.unschedulable;
  if (pod.nodeLost) return `node ${pod.node} is unreachable`;
  if (pod.stopping) return pod.stopReason;
  if (pod.status === undefined || pod.status.ready) return "";
  return statusProblem(pod.status);
}

function keptProblem({ status, keptUntil }: Pod): string {
  const why = status === undefined ? "" : statusProblem(status);
  const until = `stopped by a rollback; its logs are kept until ${dateTime(keptUntil)}`;
  return why === "" ? until : `${why}; ${until}`;
}

function statusProblem(status: PodStatus): string {
  // The pod's own message explains why a running container is not ready. Completed init containers
  // are not failures.
  const ended = status.containers.filter(
    ({ init, ready, state }) => !(init && ready) && state?.$case !== "running",
  );
  const container = ended.map(containerProblem).find((text) => text !== "");
  return container ?? status.message;
}

export function readyContainers(pod: Pod): string {
  const containers = (pod.status?.containers ?? []).filter(({ init }) => !init);
  return `${containers.filter(({ ready }) => ready).length}/${containers.length}`;
}

export function restarts(pod: Pod): number {
  return (pod.status?.containers ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);
}

export function hostPorts(pod: Pod): string {
  return (pod.status?.hostPorts ?? [])
    .map(
      ({ hostPort, containerPort, protocol }) =>
        `${hostPort}→${containerPort}/${protocol.toLowerCase() || "tcp"}`,
    )
    .join(",");
}

function podStyle(pod: Pod): Style | undefined {
  if (pod.nodeLost || pod.status?.phase === PodPhase.FAILED) return "bad";
  if (pod.status?.ready === true && !pod.stopping) return "good";
  return pod.status?.phase === PodPhase.SUCCEEDED ? undefined : "busy";
}

function containerProblem({ state, lastTermination }: ContainerStatus): string {
  const ended = state?.$case === "terminated" ? state.value : lastTermination;
  const waiting = state?.$case === "waiting" ? state.value.message : "";
  return [ended === undefined ? "" : terminationText(ended), waiting]
    .filter((text) => text !== "")
    .join("; ");
}

function terminationText({ exitCode, signal, message }: ContainerTerminated): string {
  const how = signal > 0 ? `killed by signal ${signal}` : `exited with code ${exitCode}`;
  const lastLine = message.trim().split("\n").at(-1) ?? "";
  return lastLine === "" ? how : `${how}: ${lastLine}`;
}

function phaseName(phase: PodPhase): string {
  const [name] = Object.entries(PodPhase).find(([, value]) => value === phase) ?? ["UNKNOWN"];
  return name === "UNSPECIFIED" ? "Unknown" : name.charAt(0) + name.slice(1).toLowerCase();
}
