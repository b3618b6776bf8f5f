import type {
  CapacityResponse,
  NodeLoss,
  NodePods,
  ResourceOutcome,
  WhatIfResponse,
  WorkloadOutcome,
} from "@forage/proto/forage/operator/v1/operator";
import { formatAmount, parseAmount } from "@forage/scheduler";
import type { Paint } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";
import { type Column, renderTable } from "../output/table.ts";

/** The most nodes that are named in one line. */
const MAX_NAMED = 8;

/**
 * Describes the result of a dry run: workload by workload, then the utilization of the fleet. Ends
 * with a line feed.
 */
export function describeWhatIf(found: WhatIfResponse, paint: Paint): string {
  const { workloads, resources, notes, losses, nodesTried, safe, estimated } = found;
  const isAny = nodesTried > 0;
  const parts = [
    ...workloads.map((outcome) => describeWorkload(outcome, paint)),
    ...losses.map((loss) => describeLoss(loss, paint)),
    ...(resources.length === 0 ? [] : [describeResources(resources, paint)]),
    ...notes.map((note) => `${paint("strong", plainText(note))}\n`),
    ...(estimated.length === 0 ? [] : [estimatedText(estimated, nodesTried)]),
  ];
  const verdict = isAny ? anyVerdict(safe, losses.length, nodesTried) : verdictOf(safe, workloads);
  return `${parts.join("\n")}${parts.length === 0 ? "" : "\n"}${paint(safe ? "good" : "bad", verdict)}\n`;
}

/** Describes how many more pods fit. Ends with a line feed. */
export function describeCapacity(found: CapacityResponse, paint: Paint): string {
  const { pods, more, podsIfPooled, nodes, runsOutFirst, why, requests } = found;
  const shape = Object.entries(requests)
    .filter(([resource]) => resource !== "pods")
    .map(([resource, amount]) => `${amountText(resource, amount)} ${plainText(resource)}`);
  const each = shape.length === 0 ? "" : ` of ${shape.join(", ")}`;
  const lines = [paint("strong", `${more ? "at least " : ""}${pods} more ${noun(pods, "pod")}${each}`)];
  if (nodes.length > 0) lines.push(`    on ${namesOf(nodes)}`);
  if (podsIfPooled > pods && !more)
    lines.push(`    ${podsIfPooled} if the same room were on one node: the rest is lost to fragmentation`);
  if (runsOutFirst !== "") lines.push(`    ${plainText(runsOutFirst)} runs out first`);
  if (why !== "") lines.push(`    the next one: ${plainText(why)}`);
  return `${lines.join("\n")}\n`;
}

function describeWorkload(outcome: WorkloadOutcome, paint: Paint): string {
  const { namespace, kind, name, left, came, waiting } = outcome;
  const title = kind === "container_service" ? `${namespace}/${name}` : `${namespace}/${kind}/${name}`;
  const lines = [`${paint("strong", plainText(title))}  ${readiness(outcome)}`];
  if (left.length > 0) lines.push(`    leaves ${namesOf(left)}`);
  if (came.length > 0) lines.push(`    comes to ${namesOf(came)}`);
  for (const { pods, why, already } of waiting) {
    const known = already === 0 ? "" : ` (${already} ${already === 1 ? "does" : "do"} now)`;
    lines.push(paint("bad", `    ${pods} ${pods === 1 ? "waits" : "wait"}${known}: ${plainText(why)}`));
  }
  return `${lines.join("\n")}\n`;
}

function readiness({ kind, readyBefore, readyLowest, readyAfter, minimum }: WorkloadOutcome): string {
  if (kind !== "container_service") return "";
  const least = minimum === undefined ? "" : ` of at least ${minimum}`;
  return `ready: ${readyBefore} now, ${readyLowest}${least} at worst, ${readyAfter} in the end`;
}

function describeLoss(loss: NodeLoss, paint: Paint): string {
  const { node, pods, estimated, workloads, resources, notes } = loss;
  const how = estimated ? " (estimated)" : "";
  const title = `without ${plainText(node)}, which has ${pods} ${noun(pods, "pod")}${how}:`;
  const parts =
    workloads.length > 0
      ? workloads.map((outcome) => describeWorkload(outcome, paint))
      : [...waitingLines(loss), ...shortLines(loss)].map((line) => `${line}\n`);
  const table = resources.length === 0 ? "" : describeResources(resources, paint);
  const body = [...parts, table, ...notes.map((note) => `${paint("strong", plainText(note))}\n`)].join("");
  return `${paint("bad", title)}\n${body.replace(/^(?=.)/gm, "    ")}`;
}

function waitingLines({ waiting }: NodeLoss): string[] {
  return waiting.map(({ namespace, name, pods, why }) =>
    plainText(`${pods} of ${namespace}/${name} ${pods === 1 ? "waits" : "wait"}: ${why}`),
  );
}

function shortLines({ short }: NodeLoss): string[] {
  return short.map(({ namespace, name, readyBefore, readyLowest, minimum }) =>
    plainText(
      `${namespace}/${name} has ${readyLowest} of at least ${minimum} ready at worst, ${readyBefore} now`,
    ),
  );
}

const COLUMNS: readonly Column<ResourceOutcome>[] = [
  { title: "RESOURCE", value: ({ resource }) => resource },
  {
    title: "NOW",
    value: ({ resource, requestedBefore, allocatableBefore, percentBefore }) =>
      shareText(resource, requestedBefore, allocatableBefore, percentBefore),
  },
  {
    title: "THEN",
    value: ({ resource, requestedAfter, allocatableAfter, percentAfter }) =>
      shareText(resource, requestedAfter, allocatableAfter, percentAfter),
  },
];

function describeResources(rows: readonly ResourceOutcome[], paint: Paint): string {
  return renderTable(COLUMNS, rows, { wide: false, paint });
}

function shareText(
  resource: string,
  requested: string,
  allocatable: string,
  percent: number | undefined,
): string {
  const share = percent === undefined ? "" : ` (${Math.round(percent)} %)`;
  return `${amountText(resource, requested)} of ${amountText(resource, allocatable)}${share}`;
}

/** Values from a coordinator of another version may be unparsable, and are shown as they are. */
function amountText(resource: string, text: string): string {
  try {
    return formatAmount(resource, parseAmount(resource, text));
  } catch {
    return plainText(text);
  }
}

function namesOf(nodes: readonly NodePods[]): string {
  const named = nodes.slice(0, MAX_NAMED).map(({ node, pods }) => `${plainText(node)} (${pods})`);
  const more = nodes.length - named.length;
  return more === 0 ? named.join(", ") : `${named.join(", ")} and ${more} more ${noun(more, "node")}`;
}

function verdictOf(safe: boolean, workloads: readonly WorkloadOutcome[]): string {
  if (safe && workloads.length === 0) return "nothing would change for any pod";
  if (safe) return "every pod finds a node, and no service falls below its minimum";
  const waiting = workloads
    .flatMap(({ waiting }) => waiting)
    .reduce((sum, { pods, already }) => sum + pods - already, 0);
  const short = workloads.filter(isBelowMinimum).length;
  const parts = [
    ...(waiting > 0 ? [`${waiting} ${noun(waiting, "pod")} would wait for a node`] : []),
    ...(short > 0
      ? [`${short} ${noun(short, "service")} would fall below ${short === 1 ? "its" : "their"} minimum`]
      : []),
  ];
  // If too many nodes are lost at once, the coordinator replaces no pods, as its note states.
  return parts.length === 0 ? "lost pods would not be replaced: the note says why" : parts.join(", and ");
}

/** Reports whether the workload falls below its minimum, and lower than it is now. */
function isBelowMinimum({ readyBefore, readyLowest, minimum = 0 }: WorkloadOutcome): boolean {
  return readyLowest < Math.min(minimum, readyBefore);
}

function anyVerdict(safe: boolean, bad: number, tried: number): string {
  const nodes = `${tried} ${noun(tried, "node")}`;
  if (safe)
    return `the loss of any one of ${nodes} leaves every pod a place, and no service falls below its minimum`;
  const what = "would leave pods without a place or services below their minimum";
  return bad === 1 ? `the loss of 1 of ${nodes} ${what}` : `the loss of ${bad} of ${nodes} ${what}`;
}

function estimatedText(estimated: readonly string[], tried: number): string {
  const named = estimated
    .slice(0, MAX_NAMED)
    .map((name) => plainText(name))
    .join(", ");
  const more = estimated.length > MAX_NAMED ? ` and ${estimated.length - MAX_NAMED} more` : "";
  return `exact for ${tried - estimated.length} of ${tried} nodes; only estimated, without preemption: ${named}${more} (--lose NODE tries one out)\n`;
}

function noun(count: number | bigint, word: string): string {
  return Number(count) === 1 ? word : `${word}s`;
}
