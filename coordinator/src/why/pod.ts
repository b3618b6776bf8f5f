import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { hint } from "../model/hint.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { NodeEntry, PodEntry } from "../state/entries.ts";
import { type Cause, cause, type Diagnosis } from "./cause.ts";
import { containerCauses, restartCauses } from "./container.ts";

export interface PodInput {
  readonly pod: PodEntry;
  /** The pod's node; undefined if the pod has none, or if the node was removed. */
  readonly node: NodeEntry | undefined;
  /** The reason why no node accepts the pod, while it is unschedulable. */
  readonly unschedulable: string | undefined;
  /** Each node with the reason that excludes it, and the smallest change that would help. */
  readonly rejections: readonly string[];
  readonly nearest: string;
  readonly nowMs: number;
}

/** Reasons that a node gives for the pod as a whole. */
const WHOLE_REASONS: ReadonlySet<string> = new Set([
  "Evicted",
  "InvalidSpec",
  "InvalidAssignment",
  "JournalNotWritten",
  "OutcomeNotSaved",
  "RuntimeUnavailable",
  "NetworkSetupFailed",
  "RemoveFailed",
  "StopFailed",
]);

const WHOLE_ADVICE: Readonly<Record<string, string>> = {
  InvalidSpec: "correct the manifest and apply it again",
  InvalidAssignment: "correct the manifest and apply it again",
  JournalNotWritten:
    "free space on the node's disk below the agent's dataDir; the pod then starts automatically",
  OutcomeNotSaved:
    "free space on the node's disk below the agent's dataDir; the pod's outcome is then reported",
  RuntimeUnavailable: "check containerd on the node: systemctl status containerd",
  NetworkSetupFailed: "read the agent's log on the node: journalctl -u forage-agent",
  RemoveFailed: "read the agent's log on the node: journalctl -u forage-agent",
  StopFailed: "read the agent's log on the node: journalctl -u forage-agent",
};

/** Explains why a pod waits, restarts, is not ready or stops. */
export function explainPod(input: PodInput): Diagnosis {
  const { pod } = input;
  const { name } = pod.record;
  const causes = podCauses(input);
  const done = pod.status?.phase === PodPhase.SUCCEEDED;
  const healthy = isServing(input) || (done && pod.record.stoppingSince === undefined);
  const shown = healthy ? [...causes, ...restarts(input)] : causes;
  if (healthy)
    return { summary: `pod ${name} ${done ? "has completed" : "is ready"}`, healthy, causes: shown };
  const state = pod.record.stoppingSince !== undefined ? "is stopping" : "is not ready";
  const [first] = shown;
  return {
    summary: `pod ${name} ${state}${first === undefined ? "" : `: ${first.message}`}`,
    healthy,
    causes: shown,
  };
}

/** Explains a failed pod that was removed, and whose status and logs are kept. */
export function explainKeptPod({ pod, nowMs }: PodInput, keptUntilMs: number): Diagnosis {
  const { namespace, name, node, stopReason } = pod.record;
  const containers = pod.status?.containers ?? [];
  const found = containers.flatMap((it) => containerCauses(it, { namespace, pod: name, node, nowMs }));
  const message = pod.status?.message ?? "";
  const causes = found.length > 0 || message === "" ? found : [cause("ContainersNotReady", message)];
  const minutes = Math.max(1, Math.round((keptUntilMs - nowMs) / 60_000));
  const kept = cause(
    "Kept",
    `it was stopped (${stopReason}); its logs are kept for ${minutes} min more, or until its workload's next rollout`,
    hint(namespace, `logs ${name}`),
  );
  const [first] = causes;
  const summary = `pod ${name} failed and was stopped${first === undefined ? "" : `: ${first.message}`}`;
  return { summary, healthy: false, causes: [...causes, kept] };
}

/** Returns only the causes, the most important first. */
export function podCauses(input: PodInput): Cause[] {
  const { pod, node } = input;
  const { record, status } = pod;
  const lost = record.node !== "" && node?.health.ready !== true ? [nodeLost(input)] : [];
  if (record.stoppingSince !== undefined) return [stopping(input), ...lost];
  if (record.node === "") return [unschedulable(input)];
  if (lost.length > 0) return lost;
  if (status === undefined)
    return [cause("Starting", `node ${record.node} has received it and has not reported its state yet`)];
  if (status.ready || status.phase === PodPhase.SUCCEEDED) return [];
  const whole = WHOLE_REASONS.has(status.reason)
    ? [cause(status.reason, status.message, WHOLE_ADVICE[status.reason] ?? "")]
    : [];
  const at = { namespace: record.namespace, pod: record.name, node: record.node, nowMs: input.nowMs };
  const found = [...whole, ...status.containers.flatMap((container) => containerCauses(container, at))];
  if (found.length > 0) return found;
  if (status.reason === "ContainersNotReady") return [notReady(input, status.message)];
  return [cause("Starting", status.message === "" ? "its containers are being started" : status.message)];
}

function isServing({ pod, node }: PodInput): boolean {
  return pod.status?.ready === true && pod.record.stoppingSince === undefined && node?.health.ready === true;
}

function restarts({ pod, nowMs }: PodInput): Cause[] {
  const { namespace, name, node } = pod.record;
  const at = { namespace, pod: name, node, nowMs };
  return (pod.status?.containers ?? []).flatMap((container) => restartCauses(container, at));
}

function stopping({ pod: { record }, nowMs }: PodInput): Cause {
  const sinceMs = toEpochMs(record.stoppingSince) ?? nowMs;
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000));
  const why = record.stopReason === "" ? "its workload no longer needs it" : record.stopReason;
  return cause("Stopping", `it has been stopping for ${seconds} s: ${why}`);
}

function unschedulable({ unschedulable: why, rejections, nearest }: PodInput): Cause {
  if (why === undefined) return cause("Scheduling", "it is being placed");
  const advice =
    nearest === "" ? "free resources, add a node, or request less" : `the least that would help: ${nearest}`;
  return cause("Unschedulable", `no node fits: ${why}`, advice, rejections);
}

function nodeLost({ pod: { record }, node }: PodInput): Cause {
  if (node === undefined)
    return cause("NodeForgotten", `its node ${record.node} was removed; another pod replaces it`);
  const message = `its node ${record.node} is not ready: ${node.health.message || "it has sent no heartbeat since the coordinator started"}`;
  return cause("NodeLost", message, `forage why node/${record.node}`);
}

function notReady({ pod: { record } }: PodInput, message: string): Cause {
  const fails = message.includes(" probe fails");
  const advice =
    fails || message.includes(" probe has not passed yet")
      ? `check its responses and logs: ${hint(record.namespace, `logs ${record.name}`)}`
      : "";
  return cause(fails ? "ProbeFailed" : "ContainersNotReady", message, advice);
}
