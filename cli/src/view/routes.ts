import type {
  GatewayState,
  Resource,
  RouteCondition,
  RouteHostname,
  RouteState,
} from "@forage/proto/forage/operator/v1/operator";
import type { Paint, Style } from "../output/paint.ts";
import { renderSection } from "../output/sections.ts";
import { type Column, renderTable } from "../output/table.ts";
import { age, dateTime } from "./timestamp.ts";

/** Returns the columns of routes, and of services with an inline route. */
export function routeColumns(nowMs: number, withNamespace: boolean): Column<Resource>[] {
  const namespace: Column<Resource> = { title: "NAMESPACE", value: (resource) => resource.namespace };
  return [
    ...(withNamespace ? [namespace] : []),
    { title: "ROUTE", value: ({ kind, name }) => `${kind}/${name}` },
    { title: "HOSTNAMES", value: hostnamesText },
    { title: "TLS", value: tlsText },
    { title: "GATEWAY", value: ({ route }) => route?.gateway ?? "" },
    { title: "STATUS", value: routeWord, style: routeStyle },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "WHY", value: ({ route }) => wrongOf(route)[0]?.message ?? "", whenFilled: true },
  ];
}

/**
 * Returns `Programmed`, or one word for the first unmet requirement of the route. Empty for other
 * resources.
 */
export function routeWord({ route }: Pick<Resource, "route">): string {
  return route === undefined ? "" : (wrongOf(route)[0]?.reason ?? "Programmed");
}

export function routeStyle({ route }: Pick<Resource, "route">): Style | undefined {
  if (route === undefined) return undefined;
  const [first] = wrongOf(route);
  if (first === undefined) return "good";
  return first.type === "Programmed" ? "busy" : "bad";
}

/**
 * Returns the hostnames of a route, such as `app.example.com,*.example.org`; "*" means all hosts
 * without a route of their own.
 */
export function hostnamesText({ route }: Pick<Resource, "route">): string {
  return (route?.hostnames ?? []).map(({ hostname }) => hostname).join(",");
}

export function describeRoute(route: RouteState | undefined, paint: Paint): string {
  if (route === undefined) return "";
  const plain = { wide: false, paint };
  const conditions: Column<RouteCondition>[] = [
    { title: "CONDITION", value: ({ type }) => type },
    { title: "HOLDS", value: ({ status }) => (status ? "yes" : "no"), style: conditionStyle },
    { title: "REASON", value: ({ reason }) => reason },
    { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
  ];
  const hostnames: Column<RouteHostname>[] = [
    { title: "HOSTNAME", value: ({ hostname }) => hostname },
    { title: "TLS", value: ({ tls }) => tls },
    { title: "CERTIFICATE", value: ({ certificate }) => certificate, whenFilled: true },
    {
      title: "UNTIL",
      value: ({ certificateExpiresAt: at }) => (at === undefined ? "" : dateTime(at)),
      whenFilled: true,
    },
    { title: "APPLIED MATCHES", value: ({ matches, matchesInForce }) => `${matchesInForce}/${matches}` },
  ];
  const gateways: Column<RouteState["gateways"][number]>[] = [
    { title: "NODE", value: ({ node }) => node },
    { title: "READY", value: ({ ready }) => (ready ? "yes" : "no") },
    { title: "APPLIED", value: ({ inForce }) => (inForce ? "yes" : "no") },
    { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
  ];
  const served =
    route.gateways.length === 0
      ? `no node is gateway "${route.gateway}"`
      : renderTable(gateways, route.gateways, plain);
  return (
    renderSection("Route", renderTable(conditions, route.conditions, plain), paint) +
    renderSection("Hostnames", renderTable(hostnames, route.hostnames, plain), paint) +
    renderSection(`Gateway "${route.gateway}"`, served, paint)
  );
}

/**
 * Describes a gateway, such as `default: ready, Envoy 1.40.0`; empty if the node is not a gateway.
 */
export function gatewayText(gateway: GatewayState | undefined): string {
  if (gateway === undefined) return "";
  const { name, ready, upToDate, message, proxyVersion } = gateway;
  const parts = [
    ready ? "ready" : "not ready",
    ...(ready && !upToDate ? ["not up to date"] : []),
    ...(proxyVersion === "" ? [] : [`Envoy ${proxyVersion}`]),
    ...(message === "" ? [] : [message]),
  ];
  return `${name}: ${parts.join(", ")}`;
}

/**
 * Returns the conditions that indicate a problem: "Conflicted" if it is true, all others if they
 * are false.
 */
function wrongOf(route: RouteState | undefined): RouteCondition[] {
  return (route?.conditions ?? []).filter(isWrong);
}

function isWrong({ type, status }: RouteCondition): boolean {
  return status === (type === "Conflicted");
}

function conditionStyle(condition: RouteCondition): Style {
  if (!isWrong(condition)) return "good";
  return condition.type === "Programmed" ? "busy" : "bad";
}

function tlsText({ route }: Resource): string {
  const modes = new Set((route?.hostnames ?? []).map(({ tls }) => tls).filter((tls) => tls !== ""));
  return [...modes].join(",");
}
