import type { Condition } from "../gateway/conditions.ts";
import type { RouteStatus } from "../gateway/gateway-table.ts";
import { type Cause, cause, type Diagnosis } from "./cause.ts";

/**
 * Explains why a route is served as it is. `status` is undefined for a route that is being removed.
 */
export function explainRoute(name: string, namespace: string, status: RouteStatus | undefined): Diagnosis {
  const title = `route/${name}`;
  if (status === undefined) return { summary: `${title} is being removed`, healthy: true, causes: [] };
  const causes = routeCauses(namespace, status);
  const [first] = causes;
  const summary =
    first === undefined
      ? `${title} is applied on ${status.nodes.map(({ node }) => node).join(", ")}`
      : `${title}: ${first.message}`;
  return { summary, healthy: first === undefined, causes };
}

/** Returns the causes of problems of a route or an inline route. */
export function routeCauses(namespace: string, { conditions, gateway, nodes }: RouteStatus): Cause[] {
  return conditions
    .filter(({ type, status }) => status === (type === "Conflicted"))
    .map(({ type, reason, message }) => {
      const lacking = nodes.filter(({ ready, applied }) => !(ready && applied));
      const details = type === "Programmed" ? lacking.map((it) => `${it.node}: ${it.message}`) : [];
      return cause(reason, message, adviceFor(type, reason, namespace, gateway), details);
    });
}

function adviceFor(type: Condition["type"], reason: string, namespace: string, gateway: string): string {
  if (reason === "GatewayNotFound") return `forage node label NODE forage.dev/gateway=${gateway}`;
  switch (type) {
    case "ResolvedRefs":
      return `forage get services -n ${namespace}`;
    case "CertificateReady":
      return reason === "CertificateNotFound" ? `forage secret ls -n ${namespace}` : "";
    case "Conflicted":
    case "Accepted":
      return "take the rule out of one of the two, or give one of them another priority";
    case "Programmed":
      return "forage get nodes";
    default:
      return type satisfies never;
  }
}
