import type { Node, Pod, Usage } from "@forage/proto/forage/operator/v1/operator";
import { formatBytes, formatMilliCpu, parseAmount } from "@forage/scheduler";
import type { Column } from "../output/table.ts";

/** The sort orders of `forage top`. */
export const USAGE_ORDERS = ["cpu", "memory", "name"] as const;
export type UsageOrder = (typeof USAGE_ORDERS)[number];

type Used = Pick<Pod, "name" | "usage"> & { readonly namespace?: string };

export function nodeUsageColumns(): Column<Node>[] {
  return [
    { title: "NODE", value: ({ name }) => name },
    { title: "CPU", value: cpuText, alignRight: true },
    { title: "CPU%", value: (node) => share(node, "cpu"), alignRight: true },
    { title: "MEMORY", value: memoryText, alignRight: true },
    { title: "MEMORY%", value: (node) => share(node, "memory"), alignRight: true },
    { title: "PODS", value: ({ pods }) => String(pods), alignRight: true },
  ];
}

export function podUsageColumns(withNamespace: boolean): Column<Pod>[] {
  const namespace: Column<Pod> = { title: "NAMESPACE", value: (pod) => pod.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "POD", value: ({ name }) => name },
    { title: "CPU", value: cpuText, alignRight: true },
    { title: "MEMORY", value: memoryText, alignRight: true },
    { title: "NODE", value: ({ node }) => node },
  ];
}

/** Compares by name, or by usage with the largest first. Rows without a value come last. */
export function byUsage(order: UsageOrder): (a: Used, b: Used) => number {
  const byName = (a: Used, b: Used): number => (nameOf(a) < nameOf(b) ? -1 : 1);
  if (order === "name") return byName;
  return (a, b) => amountOf(b, order) - amountOf(a, order) || byName(a, b);
}

function nameOf({ namespace, name }: Used): string {
  return `${namespace ?? ""}/${name}`;
}

function amountOf({ usage }: Used, order: "cpu" | "memory"): number {
  const amount = order === "cpu" ? usage?.cpuMilli : usage?.memoryBytes;
  return amount === undefined ? -1 : Number(amount);
}

function cpuText({ usage }: { readonly usage?: Usage | undefined }): string {
  return usage?.cpuMilli === undefined ? "" : formatMilliCpu(Number(usage.cpuMilli));
}

function memoryText({ usage }: { readonly usage?: Usage | undefined }): string {
  return usage === undefined ? "" : formatBytes(Number(usage.memoryBytes));
}

/**
 * Returns the host's use in percent of the amount that pods may request: `42%`. It includes the
 * system's own use, so it may exceed 100 %.
 */
function share({ report, usage }: Node, resource: "cpu" | "memory"): string {
  const used = resource === "cpu" ? usage?.cpuMilli : usage?.memoryBytes;
  const allocatable = parseAmount(resource, report?.allocatable[resource] ?? "");
  if (used === undefined || allocatable === undefined || allocatable === 0) return "";
  return `${Math.round((Number(used) / allocatable) * 100)}%`;
}
