import type { NodeEntry } from "./entries.ts";

/**
 * The label of nodes to which other hosts can't open connections, such as nodes behind address translation. Its value is
 * "local".
 */
export const REACHABILITY_LABEL = "forage.dev/reachability";
/** The label whose value is always the node's name, which comes from the node's certificate. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/**
 * Labels with reserved prefixes that an agent may report about its own host: facts, as Kubernetes' NodeRestriction allows
 * them, and labels that only exclude the host from something. Labels set by the operator take precedence.
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
/** The keys of the node's identity. `hostname` is a short form for the scheduler. */
const IDENTITY: ReadonlySet<string> = new Set([HOSTNAME_LABEL, "hostname"]);
const RESERVED_DOMAINS = ["kubernetes.io", "k8s.io", "forage.dev"];

/**
 * Reports whether a label that the node's agent reports is accepted. Labels of reserved domains decide which node gets pods
 * and keys, so only the operator and the join token can set them. Pure.
 */
export function mayReport(node: string, key: string, value: string): boolean {
  if (IDENTITY.has(key)) return value === node;
  return !isReserved(key) || REPORTABLE.has(key);
}

/** Returns the keys of reported labels that are not accepted, sorted. Pure. */
export function refusedLabels({ name, report }: NodeEntry): string[] {
  return Object.entries(report?.report?.labels ?? {})
    .filter(([key, value]) => !mayReport(name, key, value))
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

/** Returns a message about rejected labels, for a condition or an event. */
export function refusedLabelsMessage(node: string, refused: readonly string[]): string {
  const shown = refused.slice(0, 5).map((label) => label.slice(0, 200));
  const more = refused.length > shown.length ? ` and ${refused.length - shown.length} more` : "";
  return `the agent's configuration sets ${shown.join(", ")}${more}, which only operators can set: remove it from the configuration, and use \`forage node label ${node} KEY=VALUE\` or a join token`;
}

/**
 * Returns all labels of a node: its identity, then labels set by the operator or the join token, then accepted labels of
 * its agent. Pure.
 */
export function labelsOf({ name, record, report }: NodeEntry): Record<string, string> {
  const reported = Object.entries(report?.report?.labels ?? {}).filter(([key, value]) =>
    mayReport(name, key, value),
  );
  return { ...Object.fromEntries(reported), ...record.labels, [HOSTNAME_LABEL]: name };
}

/** Returns the value of one label of `labelsOf`. */
export function labelOf(node: NodeEntry | undefined, label: string): string | undefined {
  if (node === undefined) return undefined;
  if (label === HOSTNAME_LABEL) return node.name;
  const operators = node.record.labels[label];
  if (operators !== undefined) return operators;
  const reported = node.report?.report?.labels[label];
  return reported !== undefined && mayReport(node.name, label, reported) ? reported : undefined;
}

/** Reports whether the pods of a node can only be reached from the node itself. */
export function isLocalOnly(node: NodeEntry | undefined): boolean {
  return labelOf(node, REACHABILITY_LABEL) === "local";
}

function isReserved(key: string): boolean {
  const slash = key.indexOf("/");
  if (slash < 0) return false;
  const domain = key.slice(0, slash);
  return RESERVED_DOMAINS.some((reserved) => domain === reserved || domain.endsWith(`.${reserved}`));
}
