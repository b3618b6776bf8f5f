import type { RouteFindings } from "./findings.ts";

/** A condition as in Kubernetes. */
export interface Condition {
  readonly type: "Accepted" | "ResolvedRefs" | "CertificateReady" | "Conflicted" | "Programmed";
  readonly status: boolean;
  /** The reason as one word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** The state of one node of the route's gateway. */
export interface GatewayNodeView {
  readonly node: string;
  /** Whether the node is reachable and its proxy accepts requests. */
  readonly ready: boolean;
  /** Whether the node has applied the present version of the route. */
  readonly applied: boolean;
  readonly message: string;
}

/** The most reasons named in one condition. Further ones are only counted. */
const MAX_REASONS = 5;

/** Returns the conditions of a route. */
export function conditionsOf(findings: RouteFindings, nodes: readonly GatewayNodeView[]): Condition[] {
  const { refs, conflicts, certificates, route } = findings;
  const conditions = [accepted(findings, nodes)];
  conditions.push(
    refs.length === 0
      ? { type: "ResolvedRefs", status: true, reason: "ResolvedRefs", message: "" }
      : { type: "ResolvedRefs", status: false, ...together(refs) },
  );
  if (route.tls?.mode === "Terminate")
    conditions.push(
      certificates.length === 0
        ? { type: "CertificateReady", status: true, reason: "Ready", message: "" }
        : { type: "CertificateReady", status: false, ...together(certificates) },
    );
  if (conflicts.length > 0) conditions.push({ type: "Conflicted", status: true, ...together(conflicts) });
  conditions.push(programmed(nodes));
  return conditions;
}

/** Reports whether the route works as specified. */
export function isHealthy(conditions: readonly Condition[]): boolean {
  return conditions.every(({ type, status }) => status === (type !== "Conflicted"));
}

/**
 * Describes the problems of the route's specification in one line, regardless of what gateways have
 * applied. Empty if there are none.
 */
export function problemText(conditions: readonly Condition[]): string {
  const wrong = conditions.filter(
    ({ type, status }) => type !== "Programmed" && status !== (type !== "Conflicted"),
  );
  return wrong.map(({ reason, message }) => `${reason}: ${message}`).join("; ");
}

function accepted({ route, hostnames }: RouteFindings, nodes: readonly GatewayNodeView[]): Condition {
  const refused = { type: "Accepted", status: false } as const;
  if (nodes.length === 0) {
    const { gateway } = route;
    const label = `forage.dev/gateway=${gateway}`;
    const message = `no node is gateway "${gateway}": forage node label NODE ${label}`;
    return { ...refused, reason: "GatewayNotFound", message };
  }
  if (hostnames.every(({ effectiveMatches }) => effectiveMatches === 0))
    return {
      ...refused,
      reason: "Conflicted",
      message: "none of its matches applies: other routes take precedence",
    };
  return { type: "Accepted", status: true, reason: "Accepted", message: "" };
}

function programmed(nodes: readonly GatewayNodeView[]): Condition {
  const type = "Programmed";
  const reached = nodes.filter(({ ready, applied }) => ready && applied);
  const lacking = nodes.filter(({ ready, applied }) => !(ready && applied));
  if (nodes.length === 0)
    return { type, status: false, reason: "GatewayNotFound", message: "no node serves this gateway" };
  const rest = listed(lacking.map(({ node, message }) => `${node}: ${message}`));
  if (lacking.length === 0) return { type, status: true, reason: "Programmed", message: "" };
  const counts = `${reached.length} of ${nodes.length} gateways serve its current version`;
  return { type, status: false, reason: "Pending", message: `${counts}; ${rest}` };
}

function together(problems: readonly { readonly reason: string; readonly message: string }[]): {
  readonly reason: string;
  readonly message: string;
} {
  return { reason: problems[0]?.reason ?? "", message: listed(problems.map(({ message }) => message)) };
}

/** Joins distinct messages, because several hostnames may have the same problem. */
function listed(messages: readonly string[]): string {
  const different = [...new Set(messages)];
  const more = different.length - MAX_REASONS;
  const shown = different.slice(0, MAX_REASONS).join("; ");
  return more > 0 ? `${shown}; and ${more} more` : shown;
}
