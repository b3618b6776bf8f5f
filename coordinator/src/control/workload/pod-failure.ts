import type { ContainerStatus } from "@forage/proto/forage/agent/v1/agent";
import { RolloutReason } from "@forage/proto/forage/store/v1/store";
import { isImageFailure, onNodes } from "../../model/image-failure.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { UnschedulablePod } from "../placement/unschedulable-pods.ts";
import type { ProgressLimits } from "./progress-limits.ts";

/** The facts that decide whether pods have failed. */
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

/** Restarts after which a crashing container is taken for broken: the first is at once, so two show that it wasn't chance. */
const RESTARTS_OF_A_CRASH = 2;
/** The reason of containers that wait for init containers. */
const HELD_BACK = "PodInitializing";
/** Messages stay readable: this many pods are named, the rest counted. */
const MAX_NAMED = 3;

/** Returns the reason why the rollout can't succeed without an operator; undefined while it can. */
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

/** POD_PHASE_FAILED. */
const FAILED_PHASE = 4;

/** Reports whether one of the pods can't have its image for now, which says nothing about the version. */
export function waitsForRegistry(pods: readonly PodEntry[]): boolean {
  return pods.some(({ status }) =>
    status?.containers.some(
      ({ state }) => state?.$case === "waiting" && state.value.reason === "ImagePullBackOff",
    ),
  );
}

/** Describes what the pods that aren't ready wait for, most important first. Empty if there is nothing to report. */
export function whatItWaitsFor(pods: readonly PodEntry[], input: PodFailureInput): string {
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
  const told = message === "" ? undefined : `${reason === "" ? "" : `${reason}: `}${message}`;
  // An init container that is done is no trouble.
  const others = containers.filter(({ init, ready }) => !(init && ready));
  // For a running container only the pod's own message explains why it isn't ready.
  const down = others.filter(({ state }) => state?.$case !== "running").map(containerMessage);
  const up = others.filter(({ state }) => state?.$case === "running").map(containerMessage);
  // That a container waits for others says less than what these wait for.
  const held = others.some(isHeldBack) ? HELD_BACK : undefined;
  return [...down, told, held, ...up].find((text) => text !== undefined) ?? "starting";
}

function isHeldBack({ state }: ContainerStatus): boolean {
  return state?.$case === "waiting" && state.value.reason === HELD_BACK && state.value.message === "";
}

function containerMessage(container: ContainerStatus): string | undefined {
  const last = terminationText(container);
  if (container.state?.$case === "waiting") {
    const { reason, message } = container.state.value;
    if (reason === "" || reason === "ContainerCreating" || isHeldBack(container)) return undefined;
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

/** `exited with code 3 (Error), last lines: …`; empty if it never ended. */
function terminationText(container: ContainerStatus): string {
  const ended = container.state?.$case === "terminated" ? container.state.value : container.lastTermination;
  if (ended === undefined) return "";
  const how = ended.signal > 0 ? `was ended by signal ${ended.signal}` : `exited with code ${ended.exitCode}`;
  const why = ended.reason === "" ? "" : ` (${ended.reason})`;
  const lines = ended.message.trim();
  return `container ${container.name} ${how}${why}${lines === "" ? "" : `; last lines: ${lines}`}`;
}
