import type { Node, Pod, Taint } from "@forage/proto/forage/operator/v1/operator";
import type { Paint } from "../output/paint.ts";
import { renderEntries, renderSection } from "../output/sections.ts";
import { renderTable } from "../output/table.ts";
import { allAddresses } from "./addresses.ts";
import { certificateLeft, labelText, nodeProblem, nodeState } from "./nodes.ts";
import { podColumns } from "./pods.ts";
import { shortQuantity } from "./quantity.ts";
import { gatewayText } from "./routes.ts";
import { age, dateTime } from "./timestamp.ts";

export function describeNode(node: Node, pods: readonly Pod[], nowMs: number, paint: Paint): string {
  const { report } = node;
  const head = renderEntries(
    [
      ["Node", node.name],
      ["Status", nodeState(node)],
      ["Why", nodeProblem(node, nowMs)],
      ["Address", allAddresses(report?.address ?? "", report?.addresses)],
      ["Labels", labelText(node.labels)],
      ["Gateway", gatewayText(node.gateway)],
      ["Taints", node.taints.map(taintText).join(", ")],
      ["By its state", node.conditionTaints.map(taintText).join(", ")],
      [
        "Joined",
        node.joinedAt === undefined ? "" : `${dateTime(node.joinedAt)} (${age(node.joinedAt, nowMs)} ago)`,
      ],
      ["Certificate", certificateText(node, nowMs)],
      ["Last seen", node.lastSeenAt === undefined ? "" : `${age(node.lastSeenAt, nowMs)} ago`],
      ["System", [report?.os, report?.kernel, report?.architecture].filter(Boolean).join(", ")],
      ["Agent", node.agentVersion],
      ["nerdctl", report?.nerdctlVersion ?? ""],
      ["containerd", report?.containerdVersion ?? ""],
      ["Runtime classes", report?.runtimeClasses.join(", ") ?? ""],
      ["SELinux", report?.selinux === true ? "yes" : ""],
      ["Boot", node.bootId],
    ],
    paint,
  );
  const podTable = renderTable(podColumns({ nowMs, withNamespace: true }), pods, { wide: false, paint });
  return (
    head +
    renderSection("Resources", resourceTable(node, paint), paint) +
    renderSection("Conditions", conditionTable(node, paint), paint) +
    renderSection("Claims", claimTable(node, paint), paint) +
    renderSection("Pods", pods.length === 0 ? "none" : podTable, paint)
  );
}

function certificateText({ certificateEnds: ends }: Node, nowMs: number): string {
  return ends === undefined ? "" : `until ${dateTime(ends)} (${certificateLeft(ends, nowMs)})`;
}

function taintText({ key, value, effect }: Taint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}

function resourceTable({ report, requested }: Node, paint: Paint): string {
  const names = Object.keys({ ...report?.capacity, ...report?.allocatable }).sort();
  if (names.length === 0) return "";
  return renderTable(
    [
      { title: "RESOURCE", value: (name) => name },
      { title: "CAPACITY", value: (name) => shortQuantity(report?.capacity[name] ?? ""), alignRight: true },
      {
        title: "FOR PODS",
        value: (name) => shortQuantity(report?.allocatable[name] ?? ""),
        alignRight: true,
      },
      { title: "REQUESTED", value: (name) => shortQuantity(requested[name] ?? "0"), alignRight: true },
    ],
    names,
    { wide: false, paint },
  );
}

function claimTable({ report }: Node, paint: Paint): string {
  const claims = report?.claims ?? [];
  if (claims.length === 0) return "";
  return renderTable(
    [
      { title: "NAMESPACE", value: ({ namespace }) => namespace },
      { title: "CLAIM", value: ({ name }) => name },
      {
        title: "CAPACITY",
        value: ({ capacityBytes }) =>
          capacityBytes === 0n ? "no limit" : shortQuantity(String(capacityBytes)),
        alignRight: true,
      },
      { title: "USED", value: ({ usedBytes }) => shortQuantity(String(usedBytes)), alignRight: true },
      { title: "PODS", value: ({ podUids }) => String(podUids.length), alignRight: true },
    ],
    claims,
    { wide: false, paint },
  );
}

function conditionTable({ report }: Node, paint: Paint): string {
  const conditions = report?.conditions ?? [];
  if (conditions.length === 0) return "";
  return renderTable(
    [
      { title: "CONDITION", value: ({ type }) => type },
      { title: "HOLDS", value: ({ status }) => (status ? "yes" : "no") },
      { title: "REASON", value: ({ reason }) => reason },
      { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
    ],
    conditions,
    { wide: false, paint },
  );
}
