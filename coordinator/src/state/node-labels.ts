import type { NodeEntry } from "./entries.ts";

/** A label of nodes that others can't open connections to, such as those behind address translation: "local". */
export const REACHABILITY_LABEL = "forage.dev/reachability";
/** The label whose value always is the node's name, which comes from the node's certificate. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/**
 * Labels below the reserved prefixes that an agent may report about its own host: facts, as Kubernetes' NodeRestriction allows
 * them, and labels that only take something away from the host. Values that the operator sets take precedence.
 */
const REPORTABLE: ReadonlySet<string> = new Set([
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  REACHABILITY_LABEL,
  "forage.dev/exclude-from-load-balancers",
  "forage.dev/workspaces",
]);
/** Keys that stand for the node's identity. `hostname` is a short form that the scheduler understands. */
const IDENTITY: ReadonlySet<string> = new Set([HOSTNAME_LABEL, "hostname"]);
const RESERVED_DOMAINS = ["kubernetes.io", "k8s.io", "forage.dev"];

/**
 * Reports whether the label counts when the node's agent reports it. Labels of reserved domains decide which node receives pods
 * and keys, so an agent can't give them to its own node; only the operator and the join token can. Pure.
 */
export function mayReport(node: string, key: string, value: string): boolean {
  if (IDENTITY.has(key)) return value === node;
  return !isReserved(key) || REPORTABLE.has(key);
}

/** Returns the labels that the agent reports and that don't count, sorted. Pure. */
export function refusedLabels({ name, report }: NodeEntry): string[] {
  return Object.entries(report?.report?.labels ?? {})
    .filter(([key, value]) => !mayReport(name, key, value))
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

/** Returns advice about refused labels, for a condition or an event. */
export function refusedLabelsMessage(node: string, refused: readonly string[]): string {
  const shown = refused.slice(0, 5).map((label) => label.slice(0, 200));
  const more = refused.length > shown.length ? ` and ${refused.length - shown.length} more` : "";
  return `the agent's configuration sets ${shown.join(", ")}${more}, which only operators can set: remove it there, and use \`forage node label ${node} KEY=VALUE\` or a join token`;
}

/**
 * Returns all labels of a node: its identity, then what the operator or the join token set, then what its agent may report. Pure.
 */
export function labelsOf({ name, record, report }: NodeEntry): Record<string, string> {
  const reported = Object.entries(report?.report?.labels ?? {}).filter(([key, value]) =>
    mayReport(name, key, value),
  );
  return { ...Object.fromEntries(reported), ...record.labels, [HOSTNAME_LABEL]: name };
}

/** One label out of `labelsOf`. */
export function labelOf(node: NodeEntry | undefined, label: string): string | undefined {
  if (node === undefined) return undefined;
  if (label === HOSTNAME_LABEL) return node.name;
  const operators = node.record.labels[label];
  if (operators !== undefined) return operators;
  const reported = node.report?.report?.labels[label];
  return reported !== undefined && mayReport(node.name, label, reported) ? reported : undefined;
}

/** Reports whether the pods of a node can be reached from that node alone. */
export function isLocalOnly(node: NodeEntry | undefined): boolean {
  return labelOf(node, REACHABILITY_LABEL) === "local";
}

function isReserved(key: string): boolean {
  const slash = key.indexOf("/");
  if (slash < 0) return false;
  const domain = key.slice(0, slash);
  return RESERVED_DOMAINS.some((reserved) => domain === reserved || domain.endsWith(`.${reserved}`));
}
