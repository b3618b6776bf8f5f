import type { Node } from "@forage/proto/forage/operator/v1/operator";
import { formatAge } from "../duration.ts";
import type { Style } from "../output/paint.ts";
import type { Column } from "../output/table.ts";
import { shortQuantity } from "./quantity.ts";
import { age, toMs } from "./timestamp.ts";

const DAY_MS = 24 * 3600 * 1000;

export function nodeColumns(nowMs: number): Column<Node>[] {
  return [
    { title: "NODE", value: ({ name }) => name },
    { title: "STATUS", value: nodeState, style: nodeStyle },
    { title: "PODS", value: ({ pods }) => String(pods), alignRight: true },
    { title: "CPU", value: (node) => share(node, "cpu") },
    { title: "MEMORY", value: (node) => share(node, "memory") },
    { title: "ADDRESS", value: ({ report }) => report?.address ?? "" },
    { title: "AGE", value: ({ joinedAt }) => age(joinedAt, nowMs), alignRight: true },
    {
      title: "CERT",
      value: ({ certificateEnds }) => certificateLeft(certificateEnds, nowMs),
      alignRight: true,
      whenFilled: true,
    },
    { title: "SEEN", value: ({ lastSeenAt }) => age(lastSeenAt, nowMs), alignRight: true, wide: true },
    { title: "AGENT", value: ({ agentVersion }) => agentVersion, wide: true },
    { title: "NERDCTL", value: ({ report }) => report?.nerdctlVersion ?? "", wide: true },
    { title: "CONTAINERD", value: ({ report }) => report?.containerdVersion ?? "", wide: true },
    { title: "OS", value: ({ report }) => report?.os ?? "", wide: true },
    { title: "KERNEL", value: ({ report }) => report?.kernel ?? "", wide: true },
    { title: "LABELS", value: ({ labels }) => labelText(labels), wide: true },
    { title: "WHY", value: (node) => nodeProblem(node, nowMs), whenFilled: true },
  ];
}

/** Returns the remaining validity of the node's certificate: `29d`, `5h3m`, `expired`. */
export function certificateLeft(ends: Node["certificateEnds"], nowMs: number): string {
  if (ends === undefined) return "";
  const leftMs = toMs(ends) - nowMs;
  if (leftMs <= 0) return "expired";
  return leftMs >= DAY_MS ? `${Math.floor(leftMs / DAY_MS)}d` : formatAge(leftMs);
}

/**
 * Returns the states of a node. Unreachable means that no heartbeats arrive; NotReady means that
 * the node itself reports a problem.
 */
export function nodeState({ ready, unreachable, unschedulable, drain }: Node): string {
  const health = ready ? "Ready" : unreachable ? "Unreachable" : "NotReady";
  const words = { draining: "Draining", drained: "Drained", failed: "Unschedulable" };
  const drained = words[(drain?.state ?? "failed") as keyof typeof words] ?? "Unschedulable";
  return unschedulable ? `${health},${drained}` : health;
}

/**
 * Returns the reason and duration for which a node is not ready, or the reason why it could not be
 * drained.
 */
export function nodeProblem({ ready, message, notReadySince, drain }: Node, nowMs: number): string {
  if (ready) return drain?.state === "failed" ? `not drained: ${drain.message}` : "";
  return notReadySince === undefined ? message : `${message} (for ${age(notReadySince, nowMs)})`;
}

/** Formats labels as `a=1,b=2`, sorted. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`)
    .join(",");
}

/** Returns the requested and the allocatable amount: `1500m/3800m`. */
function share({ requested, report }: Node, resource: string): string {
  const allocatable = report?.allocatable[resource];
  if (allocatable === undefined) return "";
  return `${shortQuantity(requested[resource] ?? "0")}/${shortQuantity(allocatable)}`;
}

function nodeStyle({ ready, unschedulable }: Node): Style {
  if (!ready) return "bad";
  return unschedulable ? "busy" : "good";
}
