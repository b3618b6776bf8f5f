import type { Node } from "@forage/proto/forage/operator/v1/operator";
import type { Style } from "../output/paint.ts";
import type { Column } from "../output/table.ts";
import { shortQuantity } from "./quantity.ts";
import { age } from "./timestamp.ts";

export function nodeColumns(nowMs: number): Column<Node>[] {
  return [
    { title: "NODE", value: ({ name }) => name },
    { title: "STATUS", value: nodeState, style: nodeStyle },
    { title: "PODS", value: ({ pods }) => String(pods), alignRight: true },
    { title: "CPU", value: (node) => share(node, "cpu") },
    { title: "MEMORY", value: (node) => share(node, "memory") },
    { title: "ADDRESS", value: ({ report }) => report?.address ?? "" },
    { title: "AGE", value: ({ joinedAt }) => age(joinedAt, nowMs), alignRight: true },
    { title: "SEEN", value: ({ lastSeenAt }) => age(lastSeenAt, nowMs), alignRight: true, wide: true },
    { title: "AGENT", value: ({ agentVersion }) => agentVersion, wide: true },
    { title: "NERDCTL", value: ({ report }) => report?.nerdctlVersion ?? "", wide: true },
    { title: "CONTAINERD", value: ({ report }) => report?.containerdVersion ?? "", wide: true },
    { title: "OS", value: ({ report }) => report?.os ?? "", wide: true },
    { title: "KERNEL", value: ({ report }) => report?.kernel ?? "", wide: true },
    { title: "LABELS", value: ({ labels }) => labelText(labels), wide: true },
    { title: "WHY", value: ({ ready, message }) => (ready ? "" : message), whenFilled: true },
  ];
}

export function nodeState({ ready, unschedulable }: Node): string {
  return `${ready ? "Ready" : "NotReady"}${unschedulable ? ",Unschedulable" : ""}`;
}

/** `a=1,b=2`, sorted. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`)
    .join(",");
}

/** Requested of what pods may take: `1500m/3800m`. */
function share({ requested, report }: Node, resource: string): string {
  const allocatable = report?.allocatable[resource];
  if (allocatable === undefined) return "";
  return `${shortQuantity(requested[resource] ?? "0")}/${shortQuantity(allocatable)}`;
}

function nodeStyle({ ready, unschedulable }: Node): Style {
  if (!ready) return "bad";
  return unschedulable ? "busy" : "good";
}
