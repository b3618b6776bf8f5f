import type { ContainerStatus } from "@forage/proto/forage/agent/v1/agent";
import { RolloutReason } from "@forage/proto/forage/store/v1/store";
import { isImageFailure, onNodes } from "../../model/image-failure.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** The information that decides whether pods have failed. */
export interface PodFailureInput {
  readonly unschedulable: (uid: string) => UnschedulablePod | undefined;
  readonly isReady: (pod: PodEntry) => boolean;
  readonly nowMs: number;
  readonly limits: ProgressLimits;
}

export interface Failure {
  readonly reason: RolloutReason;
  readonly message: string;
}

/**
 * The number of restarts after which a crashing container counts as failed. The first restart is immediate, so a second
 * crash shows that the first was no accident.
 */
const RESTARTS_OF_A_CRASH = 2;
/** The reason of containers that wait for init containers. */
const POD_INITIALIZING = "PodInitializing";
/** The largest number of pods that a message names. The rest is counted. */
const MAX_NAMED = 3;

/** Returns the reason why the rollout can't succeed without a change by the operator. Undefined: it can. */
export function failureOf(pods: readonly PodEntry[], input: PodFailureInput): Failure | undefined {
  for (const pod of pods) {
    const waiting = input.unschedulable(pod.record.uid);
    if (waiting !== undefined && input.nowMs - waiting.sinceMs >= input.limits.placementMs) {
      return { reason: RolloutReason.UNSCHEDULABLE, message: `no node fits: ${waiting.summary}` };
    }
    if (pod.status?.phase === FAILED_PHASE && pod.status.reason === "InvalidSpec") {
      const message = `pod ${pod.record.name}: InvalidSpec: ${pod.status.message}`;
      return { reason: RolloutReason.START, message };
    }
    for (const container of pod.status?.containers ?? []) {
      const failure = containerFailure(container);
      if (failure === undefined) continue;
      const where = failure.reason === RolloutReason.IMAGE ? onNodes([pod.record.node]) : "";
      return { ...failure, message: `pod ${pod.record.name}: ${failure.message}${where}` };
    }
  }
  return undefined;
}

/** The value of POD_PHASE_FAILED. */
const FAILED_PHASE = 4;

/** Reports whether a pod waits for an unavailable registry, which is no failure of the revision. */
export function waitsForRegistry(pods: readonly PodEntry[]): boolean {
  return pods.some(({ status }) =>
    status?.containers.some(
      ({ state }) => state?.$case === "waiting" && state.value.reason === "ImagePullBackOff",
    ),
  );
}

/** Describes the reasons why pods aren't ready, most important first. Empty: there is none. */
export function describeWaiting(pods: readonly PodEntry[], input: PodFailureInput): string {
  const byMessage = new Map<string, string[]>();
  for (const pod of pods) {
    if (input.isReady(pod)) continue;
    const message = podMessage(pod, input);
    const nodes = byMessage.get(message) ?? [];
    nodes.push(pod.record.node);
    byMessage.set(message, nodes);
  }
  const parts = [...byMessage].map(
    ([message, nodes]) => `${nodes.length} ${message}${isImageFailure(message) ? onNodes(nodes) : ""}`,
  );
  const more = parts.length > MAX_NAMED ? [`and ${parts.length - MAX_NAMED} other causes`] : [];
  return [...parts.slice(0, MAX_NAMED), ...more].join("; ");
}

function podMessage(pod: PodEntry, input: PodFailureInput): string {
  const waiting = input.unschedulable(pod.record.uid);
  if (waiting !== undefined) return `waiting for a node: ${waiting.summary}`;
  if (pod.record.node === "") return "being placed";
  if (pod.status === undefined) return "starting";
  const { reason, message, containers } = pod.status;
  const reported = message === "" ? undefined : `${reason === "" ? "" : `${reason}: `}${message}`;
  // A completed init container is no problem.
  const others = containers.filter(({ init, ready }) => !(init && ready));
  // For a running container, only the pod's message explains why it isn't ready.
  const down = others.filter(({ state }) => state?.$case !== "running").map(containerMessage);
  const up = others.filter(({ state }) => state?.$case === "running").map(containerMessage);
  // The reason of the init containers is more useful than that of the containers that wait for them.
  const held = others.some(waitsForInit) ? POD_INITIALIZING : undefined;
  return [...down, reported, held, ...up].find((text) => text !== undefined) ?? "starting";
}

function waitsForInit({ state }: ContainerStatus): boolean {
  return state?.$case === "waiting" && state.value.reason === POD_INITIALIZING && state.value.message === "";
}

function containerMessage(container: ContainerStatus): string | undefined {
  const last = terminationText(container);
  if (container.state?.$case === "waiting") {
    const { reason, message } = container.state.value;
    if (reason === "" || reason === "ContainerCreating" || waitsForInit(container)) return undefined;
    const detail = [message, last].filter((text) => text !== "").join("; ");
    return detail === "" ? reason : `${reason}: ${detail}`;
  }
  if (container.state?.$case === "terminated" || (last !== "" && !container.ready)) return last;
  return container.state?.$case === "running" && !container.ready ? "running but not ready" : undefined;
}

function containerFailure(container: ContainerStatus): Failure | undefined {
  if (container.state?.$case !== "waiting") return undefined;
  const { reason, message } = container.state.value;
  const text = containerMessage(container) ?? message;
  if (reason === "ErrImageNotFound" || reason === "ErrImageDenied" || reason === "ErrImageInvalid") {
    return { reason: RolloutReason.IMAGE, message: text };
  }
  if (container.restartCount < RESTARTS_OF_A_CRASH) return undefined;
  if (reason === "CrashLoopBackOff") return { reason: RolloutReason.CRASH, message: text };
  if (reason === "CreateError") return { reason: RolloutReason.START, message: text };
  return undefined;
}

/**
 * Formats the last termination, such as `exited with code 3 (Error), last lines: …`. Empty if the container never ended.
 */
function terminationText(container: ContainerStatus): string {
  const ended = container.state?.$case === "terminated" ? container.state.value : container.lastTermination;
  if (ended === undefined) return "";
  const how =
    ended.signal > 0 ? `was killed by signal ${ended.signal}` : `exited with code ${ended.exitCode}`;
  const why = ended.reason === "" ? "" : ` (${ended.reason})`;
  const lines = ended.message.trim();
  return `container ${container.name} ${how}${why}${lines === "" ? "" : `; last lines: ${lines}`}`;
}
